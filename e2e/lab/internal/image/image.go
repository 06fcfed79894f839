// Package image writes container images as docker archives with one layer, and
// reads their tags. The same input gives the same bytes: file times are zero,
// owners are root and directories are read in order.
//
// Files are streamed: a layer is read twice, once for its digest and its size
// and once to be written, and never held in memory.
//
// It may import the standard library alone.
package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Spec describes an image.
type Spec struct {
	// Tags are the image's names, at least one, each with its tag.
	Tags       []string
	Entrypoint []string
	Cmd        []string
	// User is "UID" or "UID:GID"; empty means root.
	User   string
	Env    []string
	Labels map[string]string
	// Files are laid down in order. /tmp, /etc, /proc, /sys and /dev exist always.
	Files []File
}

// File is one thing in an image: a copy of Source, a file or a directory with
// all it holds, or, when Link is set, a symbolic link to it.
type File struct{ Dest, Source, Link string }

// ParseFile reads DEST=SOURCE or DEST->TARGET.
func ParseFile(arg string) (File, error) {
	if dest, target, ok := strings.Cut(arg, "->"); ok && target != "" && strings.HasPrefix(dest, "/") {
		return File{Dest: dest, Link: target}, nil
	}
	if dest, source, ok := strings.Cut(arg, "="); ok && source != "" && strings.HasPrefix(dest, "/") {
		return File{Dest: dest, Source: source}, nil
	}
	return File{}, fmt.Errorf("%q: want /DEST=SOURCE or /DEST->TARGET", arg)
}

type (
	configFile struct {
		Architecture string       `json:"architecture"`
		OS           string       `json:"os"`
		Config       runConfig    `json:"config"`
		RootFS       configRootFS `json:"rootfs"`
	}
	runConfig struct {
		Entrypoint []string          `json:"Entrypoint,omitempty"`
		Cmd        []string          `json:"Cmd,omitempty"`
		User       string            `json:"User,omitempty"`
		Env        []string          `json:"Env"`
		Labels     map[string]string `json:"Labels,omitempty"`
	}
	configRootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	manifest struct {
		Config           string
		RepoTags, Layers []string
	}
)

const defaultPath = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"

// Write writes the image to path. A file at path is replaced only when the new
// one is complete.
func Write(path string, s Spec) (err error) {
	if len(s.Tags) == 0 {
		return errors.New("an image needs a tag")
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".image-*")
	if err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := archive(f, s); err != nil {
		return fmt.Errorf("write image %s: %w", s.Tags[0], err)
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return fmt.Errorf("write image %s: %w", s.Tags[0], err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write image %s: %w", s.Tags[0], err)
	}
	return nil
}

func archive(out io.Writer, s Spec) error {
	size, digest, err := measure(s.Files)
	if err != nil {
		return err
	}
	cfg, err := json.Marshal(configFile{
		Architecture: "amd64", OS: "linux",
		Config: runConfig{
			Entrypoint: s.Entrypoint, Cmd: s.Cmd, User: s.User, Labels: s.Labels,
			Env: append([]string{defaultPath}, s.Env...),
		},
		RootFS: configRootFS{Type: "layers", DiffIDs: []string{"sha256:" + digest}},
	})
	if err != nil {
		return err
	}
	cfgName, layerName := fmt.Sprintf("%x.json", sha256.Sum256(cfg)), digest+"/layer.tar"
	man, err := json.Marshal([]manifest{{Config: cfgName, RepoTags: s.Tags, Layers: []string{layerName}}})
	if err != nil {
		return err
	}
	tw := tar.NewWriter(out)
	if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: layerName, Size: size, Mode: 0o644}); err != nil {
		return err
	}
	h := sha256.New()
	if err := writeLayer(io.MultiWriter(tw, h), s.Files); err != nil {
		return err
	}
	if fmt.Sprintf("%x", h.Sum(nil)) != digest {
		return errors.New("its files changed while they were read")
	}
	for _, e := range []struct {
		name string
		body []byte
	}{{cfgName, cfg}, {"manifest.json", man}} {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.body)), Mode: 0o644}); err != nil {
			return err
		}
		if _, err := tw.Write(e.body); err != nil {
			return err
		}
	}
	return tw.Close()
}

// Tags reads the names of the images in a docker archive.
func Tags(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read an image: %w", err)
	}
	defer f.Close()
	for tr := tar.NewReader(f); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s is no docker archive: it has no manifest.json", path)
		}
		if err != nil {
			return nil, fmt.Errorf("read image %s: %w", path, err)
		}
		if h.Name != "manifest.json" {
			continue
		}
		var ms []manifest
		if err := json.NewDecoder(tr).Decode(&ms); err != nil {
			return nil, fmt.Errorf("read image %s: %w", path, err)
		}
		var tags []string
		for _, m := range ms {
			tags = append(tags, m.RepoTags...)
		}
		if len(tags) == 0 {
			return nil, fmt.Errorf("image %s has no tag, so no pod could name it", path)
		}
		return tags, nil
	}
}
