// Package config has no code: its tests hold the manifests in this folder to
// what they promise.
package config
