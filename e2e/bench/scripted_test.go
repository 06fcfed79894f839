package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/operator/e2e/framework"
)

func TestScriptHasAnOptionFileOfItsOwnForEachServerWithTheParametersOfOurs(t *testing.T) {
	objects, err := scriptObjects("secret")
	if err != nil {
		t.Fatal(err)
	}
	files, ids := objects[0].(*corev1.Secret).StringData, map[string]bool{}
	for n := 1; n <= instances; n++ {
		text := files[scriptInstance(n)+".cnf"]
		for line := range strings.Lines(text) {
			if id, ok := strings.CutPrefix(strings.ReplaceAll(line, " ", ""), "server_id="); ok {
				ids[id] = true
			}
		}
		for key, value := range framework.SmallServer() {
			if !strings.Contains(strings.ReplaceAll(text, " ", ""), key+"="+value) {
				t.Errorf("%s has no %s = %s", scriptInstance(n), key, value)
			}
		}
	}
	if len(ids) != instances {
		t.Errorf("server ids %v", ids)
	}
}
