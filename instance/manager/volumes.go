package manager

import (
	"golang.org/x/sys/unix"

	"cnmsql.co/operator/instance/protocol"
)

// volumes are the file systems that the server writes to, as far as they can be read.
func (p Paths) volumes() []protocol.Volume {
	list := volume(nil, protocol.VolumeData, p.Data)
	if p.binlogVolume() {
		list = volume(list, protocol.VolumeBinlog, p.Binlog)
	}
	return list
}

func volume(list []protocol.Volume, name, path string) []protocol.Volume {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return list
	}
	block := uint64(max(s.Bsize, 0)) // #nosec G115 -- not negative
	return append(list, protocol.Volume{
		Name: name, SizeBytes: s.Blocks * block, AvailableBytes: s.Bavail * block, ReadOnly: s.Flags&unix.ST_RDONLY != 0,
	})
}
