package flavor

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// newest is the part of a Version that is not known and taken for the highest there is: a tag like "8.4" stands for the
// newest release of that series.
const newest = 1 << 20

// Version is a release such as 8.4.3. What a distributor appends (the "-3" of Percona Server, "-log") is no part of it.
type Version struct {
	Major, Minor, Patch int
}

// Compare orders versions: negative when v is older than other, zero when both are the same, positive when newer.
func (v Version) Compare(other Version) int {
	return cmp.Or(cmp.Compare(v.Major, other.Major), cmp.Compare(v.Minor, other.Minor), cmp.Compare(v.Patch, other.Patch))
}

// AtLeast reports whether v is major.minor.patch or newer.
func (v Version) AtLeast(major, minor, patch int) bool {
	return v.Compare(Version{major, minor, patch}) >= 0
}

// String returns the version with as many numbers as are known: 8.4.3, or 8.4 for the newest of that series.
func (v Version) String() string {
	switch {
	case v.Minor == newest:
		return strconv.Itoa(v.Major)
	case v.Patch == newest:
		return fmt.Sprintf("%d.%d", v.Major, v.Minor)
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Parse reads the flavor and version from the text of `mysqld --version` or of `SELECT VERSION()`. It does not judge
// whether they are supported: see [For].
func Parse(text string) (Flavor, Version, error) {
	number := strings.TrimSpace(text)
	if _, after, found := strings.Cut(number, "Ver "); found {
		number = strings.TrimSpace(after)
	}
	lower := strings.ToLower(text)
	kind := MySQL
	if strings.Contains(lower, "mariadb") {
		kind = MariaDB
		// MariaDB up to 10.x puts this before its version, for replicas that would not believe a 10.
		number = strings.TrimPrefix(number, "5.5.5-")
	}
	if strings.Contains(lower, "tidb") {
		return "", Version{}, fmt.Errorf("reading the server version from %.80q: this is TiDB, not MySQL", text)
	}
	v, err := parseNumbers(number, 3)
	if err != nil {
		return "", Version{}, fmt.Errorf("reading the server version from %.80q: %w", text, err)
	}
	return kind, v, nil
}

// parseNumbers reads one to three numbers separated by dots, at least want of them, up to the first other character.
// The numbers that are missing are newest.
func parseNumbers(text string, want int) (Version, error) {
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if end >= 0 {
		text = text[:end]
	}
	parts := strings.Split(text, ".")
	if len(parts) < want || len(parts) > 3 {
		return Version{}, errors.New("no version number found")
	}
	numbers := [3]int{newest, newest, newest}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return Version{}, errors.New("no version number found")
		}
		numbers[i] = int(n)
	}
	return Version{numbers[0], numbers[1], numbers[2]}, nil
}
