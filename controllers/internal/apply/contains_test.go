package apply

import "testing"

func TestContains(t *testing.T) {
	type m = map[string]any
	type l = []any
	for _, tc := range []struct {
		name       string
		want, live any
		is         bool
	}{
		{"a field that only the live object has", m{"a": "1"}, m{"a": "1", "nodePort": int64(31306)}, true},
		{"another value", m{"a": "1"}, m{"a": "2"}, false},
		{"a missing field", m{"a": "1"}, m{}, false},
		{"an empty struct that is there", m{"selfSigned": m{}}, m{"selfSigned": m{}}, true},
		{"an empty struct that is missing", m{"selfSigned": m{}}, m{}, false},
		{"false against true", m{"publishNotReadyAddresses": false}, m{"publishNotReadyAddresses": true}, false},
		{"a list of another length", m{"verbs": l{"get"}}, m{"verbs": l{"get", "delete"}}, false},
		{"a list in another order", m{"verbs": l{"get", "list"}}, m{"verbs": l{"list", "get"}}, false},
		{"an added rule", m{"rules": l{m{"verbs": l{"get"}}}}, m{"rules": l{m{"verbs": l{"get"}}, m{"verbs": l{"*"}}}}, false},
		{"a port that somebody added", m{"ports": l{m{"name": "mysql", "port": int64(3306)}}}, m{"ports": l{m{"name": "x"}, m{"name": "mysql", "port": int64(3306), "nodePort": int64(1)}}}, true},
		{"a port that somebody changed", m{"ports": l{m{"name": "mysql", "port": int64(3306)}}}, m{"ports": l{m{"name": "mysql", "port": int64(3307)}}}, false},
		{"equal quantities", m{"requests": m{"storage": "1024Mi"}}, m{"requests": m{"storage": "1Gi"}}, true},
		{"other quantities", m{"requests": m{"storage": "2Gi"}}, m{"requests": m{"storage": "1Gi"}}, false},
		{"texts that look like equal quantities", m{"value": "1024Mi"}, m{"value": "1Gi"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := contains("", tc.want, tc.live); got != tc.is {
				t.Errorf("contains is %v", got)
			}
		})
	}
}
