package main

import (
	"slices"
	"strings"
	"testing"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	c, err := parse([]string{"--operator-image=b"}, env(map[string]string{"OPERATOR_IMAGE": "a", "WATCH_NAMESPACE": "shop, ,till"}))
	if err != nil || c.operatorImage != "b" || !slices.Equal(c.namespaces, []string{"shop", "till"}) || !c.leaderElect {
		t.Errorf("%+v %v", c, err)
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"operator-image":            {},
		"unexpected":                {"--operator-image=a", "serve"},
		"max-concurrent-reconciles": {"--operator-image=a", "--max-concurrent-reconciles=0"},
	} {
		if _, err := parse(args, env(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestLogLevelIsChecked(t *testing.T) {
	if _, err := newLogger("loud", nil); err == nil {
		t.Error("an unknown level was taken")
	}
	var out strings.Builder
	log, err := newLogger("info", &out)
	if err != nil {
		t.Fatal(err)
	}
	log.V(1).Info("quiet")
	log.Info("said", "cluster", "shop/c1")
	if got := out.String(); strings.Contains(got, "quiet") || !strings.Contains(got, `"cluster":"shop/c1"`) {
		t.Errorf("log %s", got)
	}
}
