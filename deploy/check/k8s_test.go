package check

import (
	"bytes"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/dotenv"
)

// manifests are the documents of k8s/.
func manifests(t *testing.T) []any {
	t.Helper()
	var all []any
	for _, name := range kustomization(t).Resources {
		for doc := range bytes.SplitSeq(open(t, "k8s/"+name), []byte("\n---\n")) {
			m, err := decode(doc)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, m)
		}
	}
	return all
}

// one returns the manifest of a type that there is one of.
func one[T any](t *testing.T) *T {
	t.Helper()
	var found []*T
	for _, m := range manifests(t) {
		if m, ok := m.(*T); ok {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d of %T", len(found), *new(T))
	}
	return found[0]
}

// pods is what the StatefulSet says of each.
func pods(t *testing.T) podSpec {
	t.Helper()
	return one[statefulSet](t).Spec.Template.Spec
}

// kustomizationFile is what is used of the format.
type kustomizationFile struct {
	typeMeta
	Namespace  string
	Labels     []struct{ Pairs map[string]string }
	Resources  []string
	ConfigMaps []generator `json:"configMapGenerator"`
	Secrets    []generator `json:"secretGenerator"`
	Images     []struct{ Name, NewName, NewTag string }
}

type generator struct {
	Name    string
	Type    string
	Envs    []string
	Files   []string
	Options struct{ DisableNameSuffixHash bool }
}

func kustomization(t *testing.T) kustomizationFile {
	t.Helper()
	var k kustomizationFile
	if err := fill(open(t, "k8s/kustomization.yaml"), &k, true); err != nil {
		t.Fatal(err)
	}
	if k.APIVersion != "kustomize.config.k8s.io/v1beta1" || k.Kind != "Kustomization" {
		t.Errorf("%+v", k.typeMeta)
	}
	return k
}

func TestKustomizationNamesEveryFile(t *testing.T) {
	k := kustomization(t)
	files, err := filepath.Glob("../k8s/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := filepath.Base(f); name != "kustomization.yaml" && !slices.Contains(k.Resources, name) {
			t.Errorf("%s is left out", name)
		}
	}
	container := pods(t).Containers[0]
	if len(k.Images) != 1 || k.Images[0].Name != container.Image {
		t.Errorf("images %v, the container has %s", k.Images, container.Image)
	}
	from := container.EnvFrom
	if len(from) != 2 || from[0].ConfigMapRef.Name != k.ConfigMaps[0].Name || from[1].SecretRef.Name != k.Secrets[0].Name {
		t.Errorf("environment from %v", from)
	}
	if _, err := os.Stat("../k8s/" + k.Secrets[0].Envs[0] + ".example"); err != nil {
		t.Error(err)
	}
}

// podSettings is the environment of a pod called ddq-0.
func podSettings(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, name := range []string{"config.env", "secret.env.example"} {
		vars, err := dotenv.Parse(bytes.NewReader(open(t, "k8s/"+name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		maps.Copy(env, vars)
	}
	pod := map[string]string{"metadata.name": "ddq-0", "metadata.namespace": "ddq"}
	for _, v := range pods(t).Containers[0].Env {
		value := v.Value
		switch from := v.ValueFrom; {
		case from == nil:
		case from.FieldRef != nil:
			value = pod[from.FieldRef.FieldPath]
		default:
			value = fromSecret(t, from.SecretKeyRef.Name, from.SecretKeyRef.Key)
		}
		for name, known := range env { // $(NAME) of those before
			value = strings.ReplaceAll(value, "$("+name+")", known)
		}
		if value == "" || strings.Contains(value, "$(") {
			t.Errorf("%s=%s", v.Name, value)
		}
		env[v.Name] = value
	}
	return env
}

// fromSecret is a value of a generated Secret, as README.md has its file made.
func fromSecret(t *testing.T, name, key string) string {
	t.Helper()
	for _, g := range kustomization(t).Secrets {
		if g.Name == name && slices.Contains(g.Files, key) {
			file := filepath.Join(t.TempDir(), key)
			runDDQ(t, "token", "root", file)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
	t.Errorf("no Secret %s has %s", name, key)
	return ""
}

// TestPodsFindTheirCertificate holds the volume against the Secret and the settings, and the
// names that pods call each other by against those of the certificate that README.md makes.
func TestPodsFindTheirCertificate(t *testing.T) {
	spec := pods(t)
	mount, volume := spec.Containers[0].VolumeMounts[0], spec.Volumes[0]
	if mount.Name != volume.Name || volume.Secret.DefaultMode&0o037 != 0 || spec.SecurityContext.FSGroup != spec.SecurityContext.RunAsGroup {
		t.Errorf("mount %+v of volume %+v", mount, volume)
	}
	secrets := kustomization(t).Secrets
	i := slices.IndexFunc(secrets, func(g generator) bool { return g.Name == volume.Secret.SecretName })
	if i < 0 || !secrets[i].Options.DisableNameSuffixHash || secrets[i].Type != "kubernetes.io/tls" {
		t.Fatalf("no Secret %s among %+v", volume.Secret.SecretName, secrets)
	}
	env, certs := podSettings(t), exampleCerts(t)
	for _, setting := range []string{"DDQ_TLS_CERT", "DDQ_TLS_KEY", "DDQ_TLS_CA"} {
		dir, key := filepath.Split(env[setting])
		f := slices.IndexFunc(secrets[i].Files, func(f string) bool { return strings.HasPrefix(f, key+"=") })
		if filepath.Clean(dir) != mount.MountPath || f < 0 {
			t.Errorf("%s=%s is not in the Secret", setting, env[setting])
			continue
		}
		_, file, _ := strings.Cut(secrets[i].Files[f], "=certs/")
		if _, err := os.Stat(filepath.Join(certs, file)); err != nil {
			t.Error(err)
		}
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "ddq.crt"), filepath.Join(certs, "ddq.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{env["DDQ_ADVERTISE_ADDR"], "ddq:9090"} {
		host, _, err := net.SplitHostPort(addr)
		if err := errors.Join(err, pair.Leaf.VerifyHostname(host)); err != nil {
			t.Error(err)
		}
	}
	for _, p := range []probe{spec.Containers[0].StartupProbe, spec.Containers[0].LivenessProbe, spec.Containers[0].ReadinessProbe} {
		if p.HTTPGet.Scheme != "HTTPS" {
			t.Errorf("probe %+v of a port with TLS", p.HTTPGet)
		}
	}
}

var certsCommand = regexp.MustCompile(`(?m)^ddq (certs .*--dir) deploy/k8s/certs(.*)$`)

// exampleCerts runs the commands of README.md that make certificates, and returns their folder.
func exampleCerts(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	commands := certsCommand.FindAllStringSubmatch(string(open(t, "README.md")), -1)
	if len(commands) != 2 {
		t.Fatalf("README.md has %d commands for certificates", len(commands))
	}
	for _, c := range commands {
		rest := strings.Fields(strings.ReplaceAll(c[2], "'", ""))
		runDDQ(t, slices.Concat(strings.Fields(c[1]), []string{dir}, rest)...)
	}
	return dir
}

func TestPodSettings(t *testing.T) {
	env := podSettings(t)
	env["DDQ_GOSSIP_KEY"] = gossipKey // secret.env has one by then
	certs := exampleCerts(t)
	checkSettings(t, settingsAt(env, "/etc/ddq/tls/tls", certs+"/ddq", "/etc/ddq/tls", certs))
	if got, want := env["DDQ_ADVERTISE_ADDR"], "ddq-0.ddq-nodes.ddq.svc:9090"; got != want {
		t.Errorf("DDQ_ADVERTISE_ADDR=%s, want %s", got, want)
	}
	spec := pods(t)
	container := spec.Containers[0]
	checkMemory(t, env["GOMEMLIMIT"], int64(container.Resources.Limits.Memory))
	pause := container.Lifecycle.PreStop.Sleep.Seconds
	checkGrace(t, "pod", env["DDQ_SHUTDOWN_GRACE"], time.Duration(spec.TerminationGracePeriodSeconds-pause)*time.Second)
	if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		t.Error("the Service ddq would set variables called DDQ_ in its own pods")
	}
}

func TestSelectorsFindThePods(t *testing.T) {
	set := one[statefulSet](t)
	pod := set.Spec.Template.Metadata.Labels
	finds := func(what string, s selector) {
		t.Helper()
		if !s.finds(pod) {
			t.Errorf("%s selects %v of pods %v", what, s, pod)
		}
	}
	finds("StatefulSet", set.Spec.Selector)
	finds("PodDisruptionBudget", one[disruptionBudget](t).Spec.Selector)
	finds("NetworkPolicy", one[networkPolicy](t).Spec.PodSelector)
	for _, c := range set.Spec.Template.Spec.TopologySpreadConstraints {
		finds("spread over "+c.TopologyKey, c.LabelSelector)
	}
	for name, s := range services(t) {
		finds("Service "+name, selector{s.Spec.Selector})
	}
}

func services(t *testing.T) map[string]*service {
	t.Helper()
	all := map[string]*service{}
	for _, m := range manifests(t) {
		if s, ok := m.(*service); ok {
			all[s.Metadata.Name] = s
		}
	}
	return all
}

func TestServicesLeadToPorts(t *testing.T) {
	set := one[statefulSet](t)
	ports := map[string]string{}
	for _, p := range set.Spec.Template.Spec.Containers[0].Ports {
		ports[p.Name] = p.Protocol.String()
	}
	all := services(t)
	for name, s := range all {
		for _, p := range s.Spec.Ports {
			if got, ok := ports[p.TargetPort]; !ok || got != p.Protocol.String() {
				t.Errorf("Service %s, port %s: no such port in the pods", name, p.Name)
			}
		}
	}
	for _, rule := range one[networkPolicy](t).Spec.Ingress {
		for _, p := range rule.Ports {
			if _, ok := ports[p.Port]; !ok {
				t.Errorf("NetworkPolicy: no port %s in the pods", p.Port)
			}
		}
	}
	nodes := all[set.Spec.ServiceName]
	if nodes == nil || nodes.Spec.ClusterIP != "None" || !nodes.Spec.PublishNotReadyAddresses {
		t.Errorf("the StatefulSet's Service %s has to be headless, with pods that are not ready", set.Spec.ServiceName)
	}
	if join := podSettings(t)["DDQ_JOIN"]; join != set.Spec.ServiceName+":7946" {
		t.Errorf("DDQ_JOIN=%s", join)
	}
}

func TestPodsHaveNoRights(t *testing.T) {
	pod := pods(t)
	c := pod.Containers[0].SecurityContext
	if pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser == 0 {
		t.Error("the pod may run as root")
	}
	if *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem || !slices.Contains(c.Capabilities.Drop, "ALL") {
		t.Errorf("the container may too much: %v", c)
	}
	if *pod.AutomountServiceAccountToken {
		t.Error("the pod gets a token that it does not need")
	}
}
