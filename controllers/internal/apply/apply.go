package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Apply makes the desired object exist as given, controlled by owner, and tells whether it wrote.
//
// The desired object is not changed. Errors: *ForeignError when the name is taken by an object that owner
// does not control; a conflict when the object was replaced meanwhile; what the API server answers.
func Apply(ctx context.Context, c client.Client, manager string, owner, desired client.Object) (changed bool, err error) {
	want, err := prepare(c, owner, desired)
	if err != nil {
		return false, err
	}
	live, err := emptyLike(c, want)
	if err != nil {
		return false, err
	}
	err = c.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		return create(ctx, c, manager, owner, want)
	case err != nil:
		return false, fmt.Errorf("reading %s: %w", name(want), err)
	case !metav1.IsControlledBy(live, owner):
		return false, foreign(want)
	case current(want, live):
		return false, nil
	}
	return update(ctx, c, manager, owner, want)
}

// prepare returns a copy of desired with its kind, its owner and the hash of its content.
func prepare(c client.Client, owner, desired client.Object) (client.Object, error) {
	want, ok := desired.DeepCopyObject().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object", desired)
	}
	gvk, err := apiutil.GVKForObject(want, c.Scheme())
	if err != nil {
		return nil, fmt.Errorf("kind of %T: %w", desired, err)
	}
	want.GetObjectKind().SetGroupVersionKind(gvk)
	if !metav1.IsControlledBy(want, owner) {
		if err := controllerutil.SetControllerReference(owner, want, c.Scheme()); err != nil {
			return nil, fmt.Errorf("setting the owner of %s: %w", name(want), err)
		}
	}
	hash, err := Hash(want)
	if err != nil {
		return nil, err
	}
	annotations := want.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[api.AnnotationSpecHash] = hash
	want.SetAnnotations(annotations)
	return want, nil
}

// current tells whether live already has everything that want says. The hash catches what want no longer
// says, the comparison what others changed.
func current(want, live client.Object) bool {
	if live.GetAnnotations()[api.AnnotationSpecHash] != want.GetAnnotations()[api.AnnotationSpecHash] {
		return false
	}
	live.GetObjectKind().SetGroupVersionKind(want.GetObjectKind().GroupVersionKind())
	wanted, err := content(want)
	if err != nil {
		return false
	}
	there, err := content(live)
	return err == nil && contains("", wanted.Object, there.Object)
}

// create makes the object, or falls back to update when the cache was behind.
func create(ctx context.Context, c client.Client, manager string, owner, want client.Object) (bool, error) {
	made, _ := want.DeepCopyObject().(client.Object)
	err := c.Create(ctx, made, client.FieldOwner(manager))
	if apierrors.IsAlreadyExists(err) {
		return update(ctx, c, manager, owner, want)
	}
	if err != nil {
		return false, fmt.Errorf("creating %s: %w", name(want), err)
	}
	return true, nil
}

// update applies want over the object as the API server has it now.
func update(ctx context.Context, c client.Client, manager string, owner, want client.Object) (bool, error) {
	now, err := read(ctx, c, want)
	if err != nil {
		return false, err
	}
	if !metav1.IsControlledBy(now, owner) {
		return false, foreign(want)
	}
	if now.GetDeletionTimestamp() == nil && current(want, now) {
		return false, nil
	}
	if err := upgrade(ctx, c, manager, now); err != nil {
		return false, err
	}
	u, err := content(want)
	if err != nil {
		return false, err
	}
	u.SetUID(now.GetUID())
	err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return false, fmt.Errorf("applying %s: %w", name(want), err)
	}
	return u.GetResourceVersion() != now.GetResourceVersion(), nil
}

// read returns the object from the API server itself, whatever the client's cache holds: a patch that
// changes nothing, as a dry run, is answered with the live object.
func read(ctx context.Context, c client.Client, want client.Object) (client.Object, error) {
	now, err := emptyLike(c, want)
	if err != nil {
		return nil, err
	}
	now.SetNamespace(want.GetNamespace())
	now.SetName(want.GetName())
	nothing := client.RawPatch(types.MergePatchType, []byte("{}"))
	if err := c.Patch(ctx, now, nothing, client.DryRunAll); err != nil {
		return nil, fmt.Errorf("reading %s from the API server: %w", name(want), err)
	}
	return now, nil
}

// upgrade turns what our create owns into what our apply owns. Without it a field that was created and is no
// longer desired would stay for ever.
func upgrade(ctx context.Context, c client.Client, manager string, now client.Object) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(now, sets.New(manager), manager)
	if err != nil {
		return fmt.Errorf("managed fields of %s: %w", name(now), err)
	}
	if len(patch) == 0 {
		return nil
	}
	if err := c.Patch(ctx, now, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(manager)); err != nil {
		return fmt.Errorf("taking over the created fields of %s: %w", name(now), err)
	}
	return nil
}

func emptyLike(c client.Client, like client.Object) (client.Object, error) {
	if _, ok := like.(*unstructured.Unstructured); ok {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(like.GetObjectKind().GroupVersionKind())
		return u, nil
	}
	o, err := c.Scheme().New(like.GetObjectKind().GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("new %T: %w", like, err)
	}
	return o.(client.Object), nil
}
