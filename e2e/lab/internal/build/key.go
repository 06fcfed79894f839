package build

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
)

// key is a hash over texts and over every file of a tree: names, executable
// bits and contents, none of which can be mistaken for another.
func key(tree fs.FS, texts ...string) (string, error) {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "text %d\n%s\n", len(t), t)
	}
	err := fs.WalkDir(tree, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f, err := tree.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(h, "file %q %t %d\n", p, info.Mode()&0o100 != 0, info.Size())
		_, err = io.Copy(h, f)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hash sources: %w", err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:16], nil
}
