package objects

import (
	corev1 "k8s.io/api/core/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Names of the volumes of a Pod.
const (
	volumeController     = "controller"
	volumeData           = "data"
	volumeBinlog         = "binlog"
	volumeRun            = "run"
	volumeTmp            = "tmp"
	volumeServerTLS      = "server-tls"
	volumeReplicationTLS = "replication-tls"
	volumeCredentials    = "credentials"
)

func volumes(c *api.Cluster, instance string) []corev1.Volume {
	list := []corev1.Volume{claim(volumeData, instance)}
	if c.Spec.BinlogStorage != nil {
		list = append(list, claim(volumeBinlog, api.BinlogPVCName(instance)))
	}
	return append(list,
		scratch(volumeController), scratch(volumeRun), scratch(volumeTmp),
		certificate(c, volumeServerTLS, api.ServerTLSSecretName(instance)),
		certificate(c, volumeReplicationTLS, c.ReplicationTLSSecretName()),
		credentials(c),
	)
}

func mounts(c *api.Cluster) []corev1.VolumeMount {
	list := []corev1.VolumeMount{{Name: volumeData, MountPath: PathData}}
	if c.Spec.BinlogStorage != nil {
		list = append(list, corev1.VolumeMount{Name: volumeBinlog, MountPath: PathBinlog})
	}
	return append(list,
		corev1.VolumeMount{Name: volumeController, MountPath: PathController, ReadOnly: true},
		corev1.VolumeMount{Name: volumeRun, MountPath: PathRun},
		corev1.VolumeMount{Name: volumeTmp, MountPath: PathTmp},
		corev1.VolumeMount{Name: volumeServerTLS, MountPath: PathServerTLS, ReadOnly: true},
		corev1.VolumeMount{Name: volumeReplicationTLS, MountPath: PathReplicationTLS, ReadOnly: true},
		corev1.VolumeMount{Name: volumeCredentials, MountPath: PathCredentials, ReadOnly: true},
	)
}

func claim(name, pvc string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pvc},
	}}
}

func scratch(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
}

func certificate(c *api.Cluster, name, secret string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, DefaultMode: secretMode(c),
		Items: []corev1.KeyToPath{
			{Key: "ca.crt", Path: "ca.crt"},
			{Key: corev1.TLSCertKey, Path: corev1.TLSCertKey},
			{Key: corev1.TLSPrivateKeyKey, Path: corev1.TLSPrivateKeyKey},
		},
	}}}
}

// credentials projects the accounts, one directory each. A user's Secret for root needs no user name: root
// is called root.
func credentials(c *api.Cluster) corev1.Volume {
	rootUser := account("root", c.RootSecretName(), api.SecretKeyUsername)
	rootUser.Secret.Optional = new(true)
	return corev1.Volume{Name: volumeCredentials, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: secretMode(c),
		Sources: []corev1.VolumeProjection{
			account("root", c.RootSecretName(), api.SecretKeyPassword),
			rootUser,
			account("app", c.AppSecretName(), api.SecretKeyUsername, api.SecretKeyPassword),
			account("control", c.ControlSecretName(), api.SecretKeyUsername, api.SecretKeyPassword),
			account("replication", c.ReplicationSecretName(), api.SecretKeyUsername, api.SecretKeyPassword),
		},
	}}}
}

func account(directory, secret string, keys ...string) corev1.VolumeProjection {
	source := &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}
	for _, key := range keys {
		source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: directory + "/" + key})
	}
	return corev1.VolumeProjection{Secret: source}
}

// secretMode lets the server's group read. Without a group on the volumes (a replaced security context) only
// "everybody in this container" is left.
func secretMode(c *api.Cluster) *int32 {
	if p := c.Spec.PodSecurityContext; p != nil && p.FSGroup == nil {
		return new(int32(0o444))
	}
	return new(int32(0o440))
}
