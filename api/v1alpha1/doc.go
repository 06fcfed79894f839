// Package v1alpha1 is the API of group mysql.cnmsql.co: its kinds, their
// defaults, and every name, label and annotation that other parts derive from
// them.
//
// The package is pure: it holds values and functions of values. It imports
// nothing else of this module.
//
// A field exists here only when it has an observable effect. Its comment says
// the unit, the limits and what it does not do.
//
// +kubebuilder:object:generate=true
// +groupName=mysql.cnmsql.co
package v1alpha1
