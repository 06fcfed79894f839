package controllers

// What the operator as a whole may do on the API server, in one place; `make
// manifests` writes it to config/rbac/role.yaml.
//
// What must stay true: no verb without a call that needs it. In particular the
// operator cannot delete a volume claim, whatever a defect may make it try, and
// it cannot delete a Secret.
//
// What is only read through the caches needs list and watch; get is given where
// something is read from the API server itself. A dry-run patch, by which
// controllers/internal/apply reads, needs patch alone.
//
// A Role can be given away only by who holds all of its rules: update of
// Clusters' status and of Leases has no other use than being in the Role of an
// instance (controllers/objects). Update of finalizers lets an object be owned
// by a Cluster that must not go before it.
//
// +kubebuilder:rbac:groups=mysql.cnmsql.co,resources=clusters,verbs=get;list;patch;watch
// +kubebuilder:rbac:groups=mysql.cnmsql.co,resources=clusters/status,verbs=patch;update
// +kubebuilder:rbac:groups=mysql.cnmsql.co,resources=clusters/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=create;delete;get;list;patch;watch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=create;get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;get;list;patch;watch
// +kubebuilder:rbac:groups="",resources=serviceaccounts;services,verbs=create;delete;list;patch;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=create;delete;list;patch;watch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create;get;list;update;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=create;delete;list;patch;watch
// +kubebuilder:rbac:groups=cert-manager.io,resources=certificates,verbs=create;delete;list;patch;watch
// +kubebuilder:rbac:groups=cert-manager.io,resources=issuers,verbs=create;list;patch;watch
