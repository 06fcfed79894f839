package provision

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Stage is how far the data of a volume are.
type Stage string

// The stages.
const (
	Initialising Stage = "initialising"
	Joining      Stage = "joining"
	Complete     Stage = "complete"
)

// State is the content of the state file: whose volume it is and how far its data are.
type State struct {
	ClusterUID string    `json:"clusterUID"`
	Instance   string    `json:"instance"`
	Stage      Stage     `json:"state"`
	Since      time.Time `json:"since"`
}

const stateFile = "state.json"

// ReadState reads the state file in a directory; nil when there is none.
func ReadState(dir string) (*State, error) {
	path := filepath.Join(dir, stateFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state of the volume: %w", err)
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, &Refusal{ReasonUnreadableState, fmt.Sprintf("%s is damaged (%v): restore it, or re-initialise the instance with an empty volume", path, err)}
	}
	return &s, nil
}

// writeState returns when the state is on the disk.
func writeState(dir string, s State) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the state of the volume: %w", err)
	}
	if err := replace(filepath.Join(dir, stateFile), append(b, '\n')); err != nil {
		return fmt.Errorf("writing the state of the volume: %w", err)
	}
	return nil
}

func replace(path string, content []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
