package sim

import (
	"testing"
	"time"
)

// story is a schedule that once showed a violation. Chance decides how exactly things meet, so it is run with several
// seeds.
type story struct {
	name   string
	config Config
	faults []Fault
	seeds  uint64
}

var stories = []story{
	{
		name:   "a primary that comes back is given the time to open, while a replica is lost",
		config: Config{Instances: 3, SemiSync: 1},
		faults: []Fault{{Kind: LoseMachine, A: 2, At: time.Second}, {Kind: PauseManager, A: 0, At: 3 * time.Second, For: 28 * time.Second}},
		seeds:  40,
	},
	{
		name:   "no label is given by a withdrawal that is not stored",
		config: Config{Instances: 2, SemiSync: 1},
		faults: []Fault{
			{Kind: CutOperator, A: 0, At: 4900 * time.Millisecond, For: time.Second},
			{Kind: AskSwitchover, A: 1, At: 5237 * time.Millisecond}, {Kind: AskSwitchover, A: 0, At: 5255 * time.Millisecond},
		},
		seeds: 300,
	},
	{
		name:   "an operator whose date is behind waits no longer than another",
		config: Config{Instances: 3, SemiSync: 1, FailoverDelay: 2, Drift: 50_000},
		faults: []Fault{
			{Kind: KillServer, A: 0, At: 2 * time.Second}, {Kind: KillOperator, At: 2100 * time.Millisecond, For: 3 * time.Second},
			{Kind: LoseMachine, A: 0, At: 2200 * time.Millisecond},
		},
		seeds: 20,
	},
	{
		name:   "the current primary resumes without witnesses when the target of its switchover is lost",
		config: Config{Instances: 2, SemiSync: 1},
		faults: []Fault{
			{Kind: CutOneWay, A: 0, B: 1, At: 5600 * time.Millisecond, For: 5 * time.Second},
			{Kind: DeletePod, A: 0, At: 6200 * time.Millisecond}, {Kind: LoseMachine, A: 1, At: 11200 * time.Millisecond},
		},
		seeds: 10,
	},
	{
		name:   "no report outlives the manager that sent it",
		config: Config{Instances: 3, SemiSync: 1},
		faults: []Fault{{Kind: CrashMachine, A: 1, At: 8814 * time.Millisecond, For: 256 * time.Millisecond}, {Kind: LoseMachine, A: 0, At: 9052 * time.Millisecond}},
		seeds:  100,
	},
	{
		name:   "no report outlives the machine that sent it to an operator that has just started",
		config: Config{Instances: 3, SemiSync: 1},
		faults: []Fault{{Kind: KillOperator, At: 3852 * time.Millisecond, For: 464 * time.Millisecond}, {Kind: LoseMachine, A: 0, At: 4430 * time.Millisecond}},
		seeds:  60,
	},
}

// A primary that cannot write gives its role to one that can, before its volume has room again.
func TestAPrimaryOnAFullVolumeIsReplaced(t *testing.T) {
	p := Plan{
		Config: Config{Instances: 3, SemiSync: 1},
		// The second does nothing, and keeps the first from being repaired.
		Faults: []Fault{{Kind: FillVolume, A: 0, At: 2 * time.Second, For: time.Minute}, {Kind: CancelAsked, At: 40 * time.Second}},
	}
	for p.Seed = range 20 {
		r := Run(p, &Sets{}, nil)
		if r.Violation != nil || r.Promotions != 1 {
			story, _ := Tell(p)
			t.Fatalf("%d promotions, %v\n%s", r.Promotions, r.Violation, story)
		}
	}
}

// A fence moves the role while it lasts, and the instance comes back as a replica.
func TestAFencedPrimaryIsReplacedWhileItIsFenced(t *testing.T) {
	for _, semiSync := range []int{0, 1} {
		p := Plan{
			Config: Config{Instances: 3, SemiSync: semiSync},
			Faults: []Fault{{Kind: FenceInstance, A: 0, At: 2 * time.Second, For: 20 * time.Second}},
		}
		for p.Seed = range 20 {
			r := Run(p, &Sets{}, nil)
			if r.Violation != nil || r.Promotions != 1 {
				story, _ := Tell(p)
				t.Fatalf("%d promotions, %v\n%s", r.Promotions, r.Violation, story)
			}
		}
	}
}

func TestStories(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			sets := &Sets{}
			for seed := range s.seeds {
				p := Plan{Config: s.config, Faults: s.faults, Seed: seed}
				if r := Run(p, sets, nil); r.Violation != nil {
					story, _ := Tell(p)
					t.Fatalf("seed %d: %s\n%s", seed, r.Violation, story)
				}
			}
		})
	}
}
