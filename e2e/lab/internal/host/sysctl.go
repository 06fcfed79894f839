package host

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"cnmsql.co/operator/e2e/lab/internal/state"
)

// sysctls are the settings that the kubelet changes for the whole machine.
var sysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// SaveSysctls records the machine's settings in file, unless it exists: after a
// crash it still holds what was there before the lab.
func SaveSysctls(file string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	var b strings.Builder
	for _, k := range sysctls {
		if v, err := os.ReadFile("/proc/sys/" + k); err == nil {
			fmt.Fprintf(&b, "%s %s\n", k, strings.TrimSpace(string(v)))
		}
	}
	return state.Write(file, []byte(b.String()), 0o644)
}

// RestoreSysctls puts back what SaveSysctls recorded and names what had changed.
func RestoreSysctls(file string) (changed []string, err error) {
	b, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the saved settings: %w", err)
	}
	var errs []error
	for _, s := range parseSysctls(string(b)) {
		now, err := os.ReadFile("/proc/sys/" + s.key)
		if err != nil || strings.TrimSpace(string(now)) == s.value {
			continue
		}
		changed = append(changed, s.key)
		if err := os.WriteFile("/proc/sys/"+s.key, []byte(s.value), 0o644); err != nil {
			errs = append(errs, fmt.Errorf("restore a setting: %w", err))
		}
	}
	return changed, errors.Join(errs...)
}

type setting struct{ key, value string }

// parseSysctls reads the lines "KEY VALUE". Keys that the lab does not save are
// dropped: the file is no way to write any setting.
func parseSysctls(text string) []setting {
	var out []setting
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		for _, known := range sysctls {
			if ok && key == known {
				out = append(out, setting{key, value})
			}
		}
	}
	return out
}
