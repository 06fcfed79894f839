package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hash is of everything that a desired object says: equal content, equal hash, across restarts.
func Hash(o client.Object) (string, error) {
	u, err := content(o)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", name(o), err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8]), nil
}

// content is what an object says, without what only the API server says.
func content(o client.Object) (*unstructured.Unstructured, error) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("converting %s: %w", name(o), err)
	}
	u := &unstructured.Unstructured{Object: raw}
	delete(u.Object, "status")
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return u, nil
}
