package image

import (
	"archive/tar"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// layer writes the one layer of an image as a tar stream.
type layer struct {
	tw *tar.Writer
	// seen holds the directories already written.
	seen map[string]bool
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// measure finds the size in bytes and the sha256 of the layer.
func measure(files []File) (size int64, digest string, err error) {
	var n counter
	h := sha256.New()
	if err := writeLayer(io.MultiWriter(&n, h), files); err != nil {
		return 0, "", err
	}
	return int64(n), fmt.Sprintf("%x", h.Sum(nil)), nil
}

func writeLayer(w io.Writer, files []File) error {
	l := &layer{tw: tar.NewWriter(w), seen: map[string]bool{}}
	if err := l.dir("tmp", 0o777|fs.ModeSticky); err != nil {
		return err
	}
	for _, d := range []string{"etc", "proc", "sys", "dev"} {
		if err := l.dir(d, 0o755); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := l.add(f); err != nil {
			return err
		}
	}
	return l.tw.Close()
}

func (l *layer) add(f File) error {
	dest := strings.TrimPrefix(path.Clean(f.Dest), "/")
	if f.Link != "" {
		return l.link(dest, f.Link)
	}
	st, err := os.Stat(f.Source)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return l.file(dest, f.Source, st)
	}
	return filepath.WalkDir(f.Source, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(f.Source, p)
		if err != nil {
			return err
		}
		return l.entry(path.Join(dest, rel), p, e)
	})
}

// entry adds one member of a directory that is copied whole.
func (l *layer) entry(dest, source string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch {
	case e.IsDir():
		return l.dir(dest, info.Mode())
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(source)
		if err != nil {
			return err
		}
		return l.link(dest, target)
	case info.Mode().IsRegular():
		return l.file(dest, source, info)
	}
	return fmt.Errorf("%s is neither a file, a directory nor a symbolic link", source)
}

// dir adds a directory and those above it, each once.
func (l *layer) dir(name string, mode fs.FileMode) error {
	if name == "." || name == "" || l.seen[name] {
		return nil
	}
	if err := l.dir(path.Dir(name), 0o755); err != nil {
		return err
	}
	l.seen[name] = true
	return l.tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: unixMode(mode), ModTime: time.Unix(0, 0)})
}

func (l *layer) link(name, target string) error {
	if err := l.dir(path.Dir(name), 0o755); err != nil {
		return err
	}
	return l.tw.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: time.Unix(0, 0)})
}

func (l *layer) file(name, source string, info fs.FileInfo) error {
	if err := l.dir(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := l.tw.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: unixMode(info.Mode()), ModTime: time.Unix(0, 0),
	}); err != nil {
		return err
	}
	if _, err := io.Copy(l.tw, f); err != nil {
		return fmt.Errorf("copy %s: %w", source, err)
	}
	return nil
}

func unixMode(m fs.FileMode) int64 {
	mode := int64(m.Perm())
	for bit, unix := range map[fs.FileMode]int64{fs.ModeSticky: 0o1000, fs.ModeSetgid: 0o2000, fs.ModeSetuid: 0o4000} {
		if m&bit != 0 {
			mode |= unix
		}
	}
	return mode
}
