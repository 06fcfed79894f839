package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
)

// listKeys are the lists that others may add to, with the field that tells their elements apart. All other
// lists are wholly ours.
var listKeys = map[string]string{"ports": "name", "ownerReferences": "uid"}

// contains tells whether live says everything that want says. What want does not mention is not compared,
// numbers and booleans included: a node port that the API server chose is no difference. field is the name
// under which the value stands.
func contains(field string, want, live any) bool {
	switch want := want.(type) {
	case map[string]any:
		live, ok := live.(map[string]any)
		return ok && containsMap(field, want, live)
	case []any:
		live, ok := live.([]any)
		return ok && containsList(field, want, live)
	case string:
		live, ok := live.(string)
		return ok && (want == live || sameQuantity(field, want, live))
	default:
		return reflect.DeepEqual(want, live)
	}
}

func containsMap(field string, want, live map[string]any) bool {
	for key, value := range want {
		other, there := live[key]
		if !there {
			return false
		}
		name := key
		if field == "requests" || field == "limits" {
			name = field
		}
		if !contains(name, value, other) {
			return false
		}
	}
	return true
}

func containsList(field string, want, live []any) bool {
	key, shared := listKeys[field]
	if !shared {
		if len(want) != len(live) {
			return false
		}
		for i := range want {
			if !contains("", want[i], live[i]) {
				return false
			}
		}
		return true
	}
	for _, element := range want {
		if !containsKeyed(key, element, live) {
			return false
		}
	}
	return true
}

func containsKeyed(key string, element any, live []any) bool {
	want, ok := element.(map[string]any)
	if !ok {
		return false
	}
	for _, candidate := range live {
		if other, ok := candidate.(map[string]any); ok && other[key] == want[key] {
			return containsMap("", want, other)
		}
	}
	return false
}

// sameQuantity knows that 1024Mi is 1Gi: the API server writes the latter.
func sameQuantity(field, want, live string) bool {
	if field != "requests" && field != "limits" {
		return false
	}
	a, errA := resource.ParseQuantity(want)
	b, errB := resource.ParseQuantity(live)
	return errA == nil && errB == nil && a.Cmp(b) == 0
}
