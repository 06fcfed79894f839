package protocol

import (
	"slices"
	"testing"
)

func TestAVolumeIsFullUntilThereIsRoomToSpare(t *testing.T) {
	var before []Volume
	for n, step := range []struct {
		available uint64
		full      bool
	}{
		{500 << 20, false}, {fullBelow, false}, {fullBelow - 1, true}, {fullBelow, true}, {roomAgain - 1, true}, {roomAgain, false},
		{fullBelow, false}, {0, true},
	} {
		before = JudgeVolumes([]Volume{{Name: VolumeData, SizeBytes: 1 << 30, AvailableBytes: step.available}}, before)
		if before[0].Full != step.full {
			t.Errorf("step %d: %+v", n, before[0])
		}
	}
}

func TestAVolumeThatCannotBeWrittenIsTrouble(t *testing.T) {
	for _, tc := range []struct {
		list []Volume
		want string
	}{
		{nil, ""},
		{[]Volume{{Name: VolumeData}, {Name: VolumeBinlog}}, ""},
		{[]Volume{{Name: VolumeData}, {Name: VolumeBinlog, Full: true}}, "its binlog volume is full"},
		{[]Volume{{Name: VolumeData, ReadOnly: true, Full: true}}, "its data volume is read-only"},
	} {
		if got := (&Report{Volumes: tc.list}).NoRoom(); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.list, got, tc.want)
		}
	}
	if why := (*Report)(nil).NoRoom(); why != "" {
		t.Error(why)
	}
}

// Else each write of the server would be told, and would wake the operator.
func TestCoarseVolumesChangeOnlyWithWhetherThereIsRoom(t *testing.T) {
	at := func(available uint64, full bool) []Volume {
		return CoarseVolumes([]Volume{{Name: VolumeData, SizeBytes: 1 << 30, AvailableBytes: available, Full: full}})
	}
	if !slices.Equal(at(500<<20, false), at(2<<20, false)) || slices.Equal(at(0, true), at(2<<20, false)) {
		t.Errorf("%+v, %+v, %+v", at(500<<20, false), at(2<<20, false), at(0, true))
	}
}
