package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The kinds of Kubernetes that k8s/ has, with the fields that it uses, named and typed as in the
// API of version 1.37. A field that is not here fails the test: whoever adds one looks it up.

type typeMeta struct{ APIVersion, Kind string }

type objectMeta struct {
	Name                string
	Labels, Annotations map[string]string
}

type selector struct{ MatchLabels map[string]string }

// finds reports whether a selector names something, and that what it names is there.
func (s selector) finds(labels map[string]string) bool {
	for name, value := range s.MatchLabels {
		if labels[name] != value {
			return false
		}
	}
	return len(s.MatchLabels) > 0
}

type service struct {
	typeMeta
	Metadata objectMeta
	Spec     struct {
		ClusterIP                string
		PublishNotReadyAddresses bool
		Selector                 map[string]string
		Ports                    []struct {
			Name        string
			Port        int32
			TargetPort  string // may be a number; ours are names
			Protocol    protocol
			AppProtocol string
		}
	}
}

// protocol is TCP where nothing is said.
type protocol string

func (p protocol) String() string {
	if p == "" {
		return "TCP"
	}
	return string(p)
}

type disruptionBudget struct {
	typeMeta
	Metadata objectMeta
	Spec     struct {
		MaxUnavailable             int32
		UnhealthyPodEvictionPolicy string
		Selector                   selector
	}
}

type networkPolicy struct {
	typeMeta
	Metadata objectMeta
	Spec     struct {
		PodSelector selector
		PolicyTypes []string
		Ingress     []struct {
			From  []struct{ PodSelector selector }
			Ports []struct {
				Port     string // may be a number; ours are names
				Protocol protocol
			}
		}
	}
}

type statefulSet struct {
	typeMeta
	Metadata objectMeta
	Spec     struct {
		Replicas            int32
		ServiceName         string
		PodManagementPolicy string
		UpdateStrategy      struct{ Type string }
		MinReadySeconds     int32
		Selector            selector
		Template            struct {
			Metadata objectMeta
			Spec     podSpec
		}
	}
}

type podSpec struct {
	EnableServiceLinks            *bool
	AutomountServiceAccountToken  *bool
	TerminationGracePeriodSeconds int64
	SecurityContext               struct {
		RunAsNonRoot                   *bool
		RunAsUser, RunAsGroup, FSGroup int64
		SeccompProfile                 struct{ Type string }
	}
	TopologySpreadConstraints []struct {
		MaxSkew           int32
		TopologyKey       string
		WhenUnsatisfiable string
		LabelSelector     selector
	}
	Containers []container
	Volumes    []struct {
		Name   string
		Secret struct {
			SecretName  string
			DefaultMode int32
		}
	}
}

type container struct {
	Name, Image string
	Args        []string
	EnvFrom     []struct{ ConfigMapRef, SecretRef struct{ Name string } }
	Env         []struct {
		Name, Value string
		ValueFrom   *struct {
			FieldRef     *struct{ FieldPath string }
			SecretKeyRef struct{ Name, Key string }
		}
	}
	VolumeMounts []struct {
		Name, MountPath string
		ReadOnly        bool
	}
	Ports []struct {
		Name          string
		ContainerPort int32
		Protocol      protocol
	}
	StartupProbe, LivenessProbe, ReadinessProbe probe
	Lifecycle                                   struct {
		PreStop struct{ Sleep struct{ Seconds int64 } }
	}
	Resources struct {
		Requests, Limits struct{ CPU, Memory quantity }
	}
	SecurityContext struct {
		AllowPrivilegeEscalation *bool
		ReadOnlyRootFilesystem   *bool
		Capabilities             struct{ Drop []string }
	}
}

type probe struct {
	HTTPGet struct{ Path, Port, Scheme string }

	PeriodSeconds, TimeoutSeconds, FailureThreshold int32
}

// quantity is a number of bytes, or of thousandths of a processor.
type quantity int64

var quantities = regexp.MustCompile(`^(\d+)(m|Mi|Gi)$`)

func (q *quantity) UnmarshalText(text []byte) error {
	found := quantities.FindSubmatch(text)
	if found == nil {
		return fmt.Errorf("quantity %q", text)
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 32)
	*q = quantity(n * map[string]int64{"m": 1, "Mi": 1 << 20, "Gi": 1 << 30}[string(found[2])])
	return err
}

// kinds makes an empty one of each.
var kinds = map[string]func() any{
	"v1 Service":                         func() any { return &service{} },
	"apps/v1 StatefulSet":                func() any { return &statefulSet{} },
	"policy/v1 PodDisruptionBudget":      func() any { return &disruptionBudget{} },
	"networking.k8s.io/v1 NetworkPolicy": func() any { return &networkPolicy{} },
}

// decode reads a manifest into its kind.
func decode(doc []byte) (any, error) {
	var kind typeMeta
	if err := fill(doc, &kind, false); err != nil {
		return nil, err
	}
	empty := kinds[kind.APIVersion+" "+kind.Kind]
	if empty == nil {
		return nil, fmt.Errorf("nobody checks %+v", kind)
	}
	into := empty()
	return into, fill(doc, into, true)
}

// fill decodes YAML as Kubernetes does, by way of JSON: a number is no string. When it is strict,
// a field that into has not is an error.
func fill(doc []byte, into any, strict bool) error {
	var plain any
	if err := yaml.Unmarshal(doc, &plain); err != nil {
		return err
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if strict {
		d.DisallowUnknownFields()
	}
	return d.Decode(into)
}

func TestAWrongManifestIsRefused(t *testing.T) {
	good := string(open(t, "k8s/statefulset.yaml"))
	for from, to := range map[string]string{
		"kind: StatefulSet":            "kind: StatefulSets",
		"apiVersion: apps/v1":          "apiVersion: apps/v2",
		"serviceName: ddq-nodes":       "serviceNames: ddq-nodes",
		"replicas: 3":                  "replicas: three",
		`prometheus.io/port: "8080"`:   "prometheus.io/port: 8080",
		"path: /readyz":                "pathh: /readyz",
		"enableServiceLinks: false":    "enableServiceLinks: no idea",
		"memory: 1Gi":                  "memory: 1GB",
		"readOnlyRootFilesystem: true": "readOnlyRootFileSystems: true",
		"minReadySeconds: 5":           "minReadySeconds: 5\n  minReadySeconds: 6",
		"      containers:":            "     containers:",
	} {
		bad := strings.Replace(good, from, to, 1)
		if bad == good {
			t.Errorf("there is no %s any more", from)
		} else if _, err := decode([]byte(bad)); err == nil {
			t.Errorf("%s is taken", to)
		}
	}
	if _, err := decode([]byte(good)); err != nil {
		t.Error(err)
	}
	if (selector{}).finds(map[string]string{"a": "b"}) || (selector{map[string]string{"a": "b"}}).finds(map[string]string{"a": "c"}) {
		t.Error("a selector of nothing finds something")
	}
}
