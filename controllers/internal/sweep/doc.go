// Package sweep deletes what was made for instances that were removed from their Cluster, and what its specification
// does not ask for any more.
//
// What holds:
//   - An instance is removed when objects.Removed says so and the API server itself, not a cache, knows no Pod
//     of it any more: a Pod that is still stopping needs its name, its certificate and its identity.
//   - Only an object that this very Cluster controls (by UID) is deleted, and only as the object that was looked at
//     (by UID): with the label of a removed instance, or, of those without an instance, one that is not wanted.
//   - Nothing is asked of the API server while there is nothing to delete.
//
// It imports the API types, controllers/objects, controller-runtime's client and apimachinery.
package sweep
