package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/operator/e2e/framework"
)

func TestPlainServersHaveAnOptionFileOfTheirOwnWithTheParametersOfOurs(t *testing.T) {
	for _, k := range []kind{scriptKind, groupKind} {
		objects, err := plainObjects(k, "secret")
		if err != nil {
			t.Fatal(err)
		}
		files, ids := objects[0].(*corev1.Secret).StringData, map[string]bool{}
		for n := 1; n <= instances; n++ {
			text := files[k.instance(n)+".cnf"]
			for line := range strings.Lines(text) {
				if id, ok := strings.CutPrefix(strings.ReplaceAll(line, " ", ""), "server_id="); ok {
					ids[id] = true
				}
			}
			for key, value := range framework.SmallServer() {
				if !strings.Contains(strings.ReplaceAll(text, " ", ""), key+"="+value) {
					t.Errorf("%s has no %s = %s", k.instance(n), key, value)
				}
			}
		}
		if len(ids) != instances {
			t.Errorf("server ids %v", ids)
		}
	}
}

func TestEachMemberOfTheGroupHasItsOwnAddressAndKnowsAll(t *testing.T) {
	seen := map[string]bool{}
	for n := 1; n <= instances; n++ {
		command := plainPod(groupKind, n).Spec.Containers[0].Command[2]
		_, address, _ := strings.Cut(command, "--group-replication-local-address=")
		address, _, _ = strings.Cut(address, " ")
		seen[address] = true
		for other := 1; other <= instances; other++ {
			_, seeds, _ := strings.Cut(command, "--group-replication-group-seeds=")
			if seeds, _, _ = strings.Cut(seeds, " "); !strings.Contains(seeds, host(groupKind.instance(other))+":33061") {
				t.Errorf("%d does not know %d: %s", n, other, seeds)
			}
		}
	}
	if len(seen) != instances {
		t.Errorf("addresses %v", seen)
	}
}
