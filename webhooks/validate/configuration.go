package validate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/mycnf"
)

func parameters(c *api.Cluster) field.ErrorList {
	path := spec.Child("mysql", "parameters")
	var errs field.ErrorList
	if f := c.Spec.MySQL.BinlogFormat; !slices.Contains([]string{"ROW", "MIXED", "STATEMENT"}, f) {
		errs = append(errs, field.NotSupported(spec.Child("mysql", "binlogFormat"), f, []string{"ROW", "MIXED", "STATEMENT"}))
	}
	for _, p := range target(c).Check(c.Spec.MySQL.Parameters) {
		errs = append(errs, field.Invalid(path.Key(p.Key), c.Spec.MySQL.Parameters[p.Key], p.Reason+": "+p.Remedy))
	}
	return errs
}

func configFiles(c *api.Cluster) field.ErrorList {
	path := spec.Child("mysql", "additionalConfigFiles")
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(c.Spec.MySQL.AdditionalConfigFiles)) {
		if !strings.HasSuffix(name, ".cnf") {
			errs = append(errs, field.Invalid(path.Key(name), name, "the name of the file must end in .cnf: rename it"))
		}
		for _, p := range target(c).CheckFile(name, c.Spec.MySQL.AdditionalConfigFiles[name]) {
			errs = append(errs, field.Invalid(path.Key(name), p.Key, p.Reason+": "+p.Remedy))
		}
	}
	return errs
}

func target(c *api.Cluster) mycnf.Target { return mycnf.Target{SemiSync: c.SemiSyncEnabled()} }

func altNames(c *api.Cluster) field.ErrorList {
	if c.Spec.Certificates == nil {
		return nil
	}
	path := spec.Child("certificates", "serverAltDNSNames")
	var errs field.ErrorList
	for i, name := range c.Spec.Certificates.ServerAltDNSNames {
		problems := validation.IsDNS1123Subdomain(name)
		if strings.HasPrefix(name, "*.") {
			problems = validation.IsWildcardDNS1123Subdomain(name)
		}
		for _, problem := range problems {
			errs = append(errs, field.Invalid(path.Index(i), name, problem))
		}
	}
	return errs
}

func environment(c *api.Cluster) field.ErrorList {
	path := spec.Child("env")
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, e := range c.Spec.Env {
		if strings.HasPrefix(e.Name, "CNMSQL_") || strings.HasPrefix(e.Name, "MYSQL") {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), e.Name, "names beginning with CNMSQL_ or MYSQL are the operator's: use another"))
		}
		for _, problem := range validation.IsEnvVarName(e.Name) {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), e.Name, problem))
		}
		if seen[e.Name] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("name"), e.Name))
		}
		seen[e.Name] = true
	}
	return errs
}

// placement: what would make every Pod be refused.
func placement(c *api.Cluster) field.ErrorList {
	path := spec.Child("affinity")
	a := &c.Spec.Affinity
	var errs field.ErrorList
	if a.PodAntiAffinityType != api.AntiAffinityPreferred && a.PodAntiAffinityType != api.AntiAffinityRequired {
		errs = append(errs, field.NotSupported(path.Child("podAntiAffinityType"), a.PodAntiAffinityType,
			[]string{api.AntiAffinityPreferred, api.AntiAffinityRequired}))
	}
	for _, problem := range validation.IsQualifiedName(a.TopologyKey) {
		errs = append(errs, field.Invalid(path.Child("topologyKey"), a.TopologyKey, problem))
	}
	errs = append(errs, labels(path.Child("nodeSelector"), a.NodeSelector)...)
	for i, s := range c.Spec.ImagePullSecrets {
		if s.Name == "" {
			errs = append(errs, field.Required(spec.Child("imagePullSecrets").Index(i).Child("name"), "name the Secret"))
		}
	}
	if strings.ContainsAny(c.Spec.ImageName, " \t\r\n") {
		errs = append(errs, field.Invalid(spec.Child("imageName"), c.Spec.ImageName, "holds white space: remove it"))
	}
	return errs
}

// inheritedMetadata may name what is the operator's: that is left out where objects are built.
func inheritedMetadata(c *api.Cluster) field.ErrorList {
	var errs field.ErrorList
	if m := c.Spec.InheritedMetadata; m != nil {
		errs = append(errs, metadata(spec.Child("inheritedMetadata"), m)...)
	}
	if t := c.Spec.ServiceAccountTemplate; t != nil {
		errs = append(errs, metadata(spec.Child("serviceAccountTemplate", "metadata"), &t.Metadata)...)
	}
	return errs
}

func metadata(path *field.Path, m *api.EmbeddedMetadata) field.ErrorList {
	errs := labels(path.Child("labels"), m.Labels)
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		for _, problem := range validation.IsQualifiedName(strings.ToLower(key)) {
			errs = append(errs, field.Invalid(path.Child("annotations"), key, problem))
		}
	}
	return errs
}

func labels(path *field.Path, set map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(set)) {
		for _, problem := range validation.IsQualifiedName(key) {
			errs = append(errs, field.Invalid(path, key, problem))
		}
		for _, problem := range validation.IsValidLabelValue(set[key]) {
			errs = append(errs, field.Invalid(path.Key(key), set[key], problem))
		}
	}
	return errs
}
