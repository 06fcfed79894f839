package protocol

import (
	"slices"
	"testing"
)

func TestAVolumeIsTroubleWhenNothingMoreCanBeWritten(t *testing.T) {
	const gib = 1 << 30
	for _, tc := range []struct {
		v    Volume
		want string
	}{
		{Volume{Name: VolumeData, SizeBytes: gib, AvailableBytes: gib / 2}, ""},
		{Volume{Name: VolumeData, SizeBytes: gib, AvailableBytes: fullBelow}, ""},
		{Volume{Name: VolumeData, SizeBytes: gib, AvailableBytes: fullBelow - 1}, "its data volume is full"},
		{Volume{Name: VolumeBinlog, SizeBytes: gib}, "its binlog volume is full"},
		{Volume{Name: VolumeData, SizeBytes: gib, AvailableBytes: gib, ReadOnly: true}, "its data volume is read-only"},
	} {
		if got := tc.v.Trouble(); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.v, got, tc.want)
		}
	}
}

// Else each write of the server would be told, and would wake the operator.
func TestCoarseVolumesChangeOnlyWithWhetherThereIsRoom(t *testing.T) {
	at := func(available uint64) []Volume {
		return CoarseVolumes([]Volume{{Name: VolumeData, SizeBytes: 1 << 30, AvailableBytes: available}})
	}
	if !slices.Equal(at(500<<20), at(fullBelow)) || !slices.Equal(at(fullBelow-1), at(0)) {
		t.Error("they change while the trouble does not")
	}
	if slices.Equal(at(fullBelow), at(fullBelow-1)) || CoarseVolumes(at(0))[0].Trouble() == "" || CoarseVolumes(at(fullBelow))[0].Trouble() != "" {
		t.Error("they do not tell of the trouble")
	}
}
