package mycnf

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
	// fixedNeed is what the server uses beside the buffer pool before anybody connects; measured with the performance
	// schema on, 480 MiB.
	fixedNeed    = 512 * mebibyte
	smallestPool = 64 * mebibyte
	// unknownPool is the server's own default.
	unknownPool  = 128 * mebibyte
	poolChunk    = 128 * mebibyte
	maxInstances = 8
)

// bufferPool derives the size in bytes and the number of parts of the InnoDB buffer pool from a memory limit: half of
// what is left after fixedNeed. The size is a multiple of what the server would otherwise round it up to, which could
// be far beyond the limit.
func bufferPool(limit uint64) (size, instances uint64) {
	if limit == 0 {
		return unknownPool, 1
	}
	if limit < fixedNeed+2*smallestPool {
		return smallestPool, 1
	}
	size = (limit - fixedNeed) / 2
	if size < poolChunk {
		return size / mebibyte * mebibyte, 1
	}
	instances = min(max(size/gibibyte, 1), maxInstances)
	unit := instances * poolChunk
	return size / unit * unit, instances
}
