package role

import "time"

// claimNeeds is for how long the lease must still be in force when a claim is sent.
const claimNeeds = time.Second

// Claimable says why a claim that was decided must not be written any more; empty when it may. decided is the intent
// that it was decided from, now the Cluster as it has just been read, left for how long the lease is still in force.
func Claimable(instance string, decided, now Intent, d Decision, left time.Duration) string {
	t := now.Transition
	switch {
	case t == nil || t.Attempt != d.Step.Attempt || t.To != instance:
		return "the transition is not the same any more"
	case now.CurrentPrimary != decided.CurrentPrimary || now.Generation != decided.Generation:
		return "the primary has changed"
	case now.Diverged:
		return "this instance is marked as diverged"
	case now.Fenced:
		return "this instance is fenced"
	case now.pending() == nil:
		return "the transition is not for the next generation"
	case left < claimNeeds:
		return "the primary lease is not in force"
	}
	return ""
}

// KeepsAnswers tells of the steps on the way from the lease to open writes: nobody can write meanwhile, so what the
// other instances held stays what they hold.
func (k StepKind) KeepsAnswers() bool {
	switch k {
	case StopReceiver, Claim, SourceSemiSync, RecordReassert:
		return true
	default:
		return false
	}
}

// Refused is what a decision refuses in this generation, to be remembered; nil when it refuses nothing.
func (d Decision) Refused(generation int64) *Refusal {
	switch {
	case d.PromotionRefused != "":
		return &Refusal{Attempt: d.PromotionRefusedAttempt, Why: d.PromotionRefused}
	case d.ResumeRefused != "":
		return &Refusal{Generation: generation, Why: d.ResumeRefused}
	}
	return nil
}
