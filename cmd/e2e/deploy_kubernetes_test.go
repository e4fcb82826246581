package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	broker "github.com/hookfabric/hookfabric/cmd/broker/app"
)

const kubernetesFolder = deployed + "kubernetes/"

// A kustomization names the files that belong together.
type kustomization struct {
	APIVersion string                 `yaml:"apiVersion"`
	Kind       string                 `yaml:"kind"`
	Namespace  string                 `yaml:"namespace"`
	Labels     []map[string]podLabels `yaml:"labels"`
	Resources  []string               `yaml:"resources"`
	Patches    []struct {
		Path string `yaml:"path"`
	} `yaml:"patches"`
	ConfigMaps []struct {
		Name  string   `yaml:"name"`
		Files []string `yaml:"files"`
	} `yaml:"configMapGenerator"`
	Images []struct {
		Name string `yaml:"name"`
		Tag  string `yaml:"newTag"`
	} `yaml:"images"`
	Generator struct {
		NoHash bool `yaml:"disableNameSuffixHash"`
	} `yaml:"generatorOptions"`
}

// kustomizations are all of them by their folders.
func kustomizations(t testing.TB) map[string]kustomization {
	t.Helper()
	all := make(map[string]kustomization)
	err := filepath.WalkDir(kubernetesFolder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "kustomization.yaml" {
			var k kustomization
			readStrictly(t, path, &k)
			all[filepath.Dir(path)] = k
		}
		return err
	})
	if err != nil || len(all) < 4 {
		t.Fatalf("%d kustomizations: %v", len(all), err)
	}
	return all
}

// decodeManifests reads manifests, of which there may be several.
func decodeManifests(t testing.TB, where string, text []byte) (all []manifest) {
	t.Helper()
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var m manifest
		if err := yaml.Load(part, &m, yaml.WithKnownFields()); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if m.APIVersion == "" || m.Kind == "" || m.Metadata.Name == "" {
			t.Errorf("%s has a manifest without a kind or a name: %+v", where, m)
		}
		all = append(all, m)
	}
	return all
}

// written are the manifests that stand in a folder, in its namespace.
func written(t testing.TB, folder string) (all []manifest) {
	t.Helper()
	k := kustomizations(t)[filepath.Clean(kubernetesFolder+folder)]
	for _, file := range k.Resources {
		text, err := os.ReadFile(filepath.Join(kubernetesFolder, folder, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range decodeManifests(t, folder+"/"+file, text) {
			if m.Metadata.Namespace = k.Namespace; m.Kind == "Namespace" {
				m.Metadata.Namespace = ""
			}
			all = append(all, m)
		}
	}
	for _, c := range k.ConfigMaps {
		all = append(all, manifest{APIVersion: "v1", Kind: "ConfigMap", Metadata: metadata{Name: c.Name, Namespace: k.Namespace}})
	}
	return all
}

// rendered are the manifests that kustomize makes of a folder.
func rendered(t testing.TB, folder string) []manifest {
	t.Helper()
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("NOT TRIED: there is no kubectl here, so that kustomize takes the manifests stays untested")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "kustomize", kubernetesFolder+folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kustomize %s: %v\n%s", folder, err, &stderr)
	}
	return decodeManifests(t, folder, out)
}

// Every file belongs to a kustomization, and all that these name is there.
func TestKustomizationsAreComplete(t *testing.T) {
	used := map[string]bool{}
	for folder, k := range kustomizations(t) {
		used[filepath.Join(folder, "kustomization.yaml")] = true
		named := slices.Clone(k.Resources)
		for _, p := range k.Patches {
			named = append(named, p.Path)
		}
		for _, c := range k.ConfigMaps {
			named = append(named, c.Files...)
		}
		for _, name := range named {
			path := filepath.Join(folder, name)
			used[path] = true
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s names %s: %v", folder, name, err)
			}
		}
	}
	used[filepath.Clean(kubernetesFolder+"monitoring/adapter-rules.yaml")] = true
	err := filepath.WalkDir(kubernetesFolder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !used[path] {
			t.Errorf("%s belongs to no kustomization", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The manifests agree with each other and with the programs, as they are written and as
// kustomize makes them.
func TestManifests(t *testing.T) {
	for _, folder := range []string{"base", "shims"} {
		t.Run("written "+folder, func(t *testing.T) { checkManifests(t, written(t, folder)) })
	}
	for _, folder := range []string{"base", "overlays/single", "overlays/production", "shims"} {
		t.Run("rendered "+folder, func(t *testing.T) { checkManifests(t, rendered(t, folder)) })
	}
}

// pods are the manifests that run some.
func pods(all []manifest) []manifest {
	return slices.DeleteFunc(slices.Clone(all), func(m manifest) bool {
		return !slices.Contains([]string{"StatefulSet", "Deployment", "DaemonSet"}, m.Kind)
	})
}

func checkManifests(t *testing.T, all []manifest) {
	t.Helper()
	for i := range all {
		m := &all[i]
		switch m.Kind {
		case "StatefulSet", "Deployment", "DaemonSet":
			checkWorkload(t, m, all)
		case "Service":
			checkService(t, m, all)
		case "PodDisruptionBudget":
			if len(matched(m.Spec.Selector.matching(), all)) == 0 {
				t.Errorf("the budget %s is of no pods", m.Metadata.Name)
			}
		case "NetworkPolicy":
			checkPolicy(t, m, all)
		case "HorizontalPodAutoscaler":
			checkAutoscaler(t, m, all)
		case "ServiceMonitor":
			checkMonitor(t, m, all)
		case "Namespace", "ServiceAccount", "ConfigMap":
		default:
			t.Errorf("%s %s: no test checks manifests of this kind", m.Kind, m.Metadata.Name)
		}
	}
}

// matched are the manifests whose pods have the labels.
func matched(want podLabels, all []manifest) (found []manifest) {
	for _, m := range pods(all) {
		if len(want) > 0 && hasLabels(m.Spec.Template.Metadata.Labels, want) {
			found = append(found, m)
		}
	}
	return found
}

func hasLabels(have, want podLabels) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

func findManifest(kind, name string, all []manifest) *manifest {
	i := slices.IndexFunc(all, func(m manifest) bool { return m.Kind == kind && m.Metadata.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// portsOf are those of a workload's containers by their names.
func portsOf(m *manifest) map[string]int {
	found := make(map[string]int)
	for _, c := range m.Spec.Template.Spec.Containers {
		for _, p := range c.Ports {
			found[p.Name] = p.Port
		}
	}
	return found
}

func checkService(t *testing.T, m *manifest, all []manifest) {
	t.Helper()
	of := matched(m.Spec.Selector.matching(), all)
	if len(of) == 0 {
		t.Errorf("the service %s is of no pods", m.Metadata.Name)
	}
	for i := range of {
		for _, p := range m.Spec.Ports {
			if at, ok := portsOf(&of[i])[p.Target]; !ok || at != p.Port {
				t.Errorf("the service %s has the port %d, and %s is %d at %s", m.Metadata.Name, p.Port, p.Target, at, of[i].Metadata.Name)
			}
		}
	}
}

// Each rule of a policy names a port and a peer.
func checkPolicy(t *testing.T, m *manifest, all []manifest) {
	t.Helper()
	of := matched(m.Spec.PodSelector.MatchLabels, all)
	if len(of) == 0 && len(m.Spec.PodSelector.MatchLabels) > 0 {
		t.Errorf("the policy %s is of no pods", m.Metadata.Name)
	}
	if !slices.Equal(m.Spec.PolicyTypes, []string{"Ingress", "Egress"}) {
		t.Errorf("the policy %s is about %q", m.Metadata.Name, m.Spec.PolicyTypes)
	}
	for _, r := range m.Spec.Ingress {
		for _, p := range r.Ports {
			for i := range of {
				if _, ok := portsOf(&of[i])[fmt.Sprint(p.Port)]; !ok {
					t.Errorf("the policy %s lets others in at %v, which %s does not have", m.Metadata.Name, p.Port, of[i].Metadata.Name)
				}
			}
		}
	}
	for _, r := range slices.Concat(m.Spec.Ingress, m.Spec.Egress) {
		for _, who := range slices.Concat(r.From, r.To) {
			if strings.HasSuffix(who.Block.CIDR, "/0") {
				t.Errorf("the policy %s lets everybody through: %s", m.Metadata.Name, who.Block.CIDR)
			}
			if who.Pods != nil && who.Namespaces == nil && len(matched(who.Pods.MatchLabels, all)) == 0 {
				t.Errorf("the policy %s speaks of pods that are not there: %v", m.Metadata.Name, who.Pods)
			}
		}
	}
}

// adapterRules are the metrics that the Prometheus adapter makes for autoscalers.
func adapterRules(t testing.TB) map[string]string {
	t.Helper()
	var file struct {
		Rules []struct {
			Series    string `yaml:"seriesQuery"`
			Resources struct {
				Overrides map[string]map[string]string `yaml:"overrides"`
			} `yaml:"resources"`
			Name struct {
				As string `yaml:"as"`
			} `yaml:"name"`
			Query string `yaml:"metricsQuery"`
		} `yaml:"rules"`
	}
	readStrictly(t, kubernetesFolder+"monitoring/adapter-rules.yaml", &file)
	all := make(map[string]string)
	for _, r := range file.Rules {
		all[r.Name.As] = strings.NewReplacer("<<.GroupBy>>", "pod", "<<.LabelMatchers>>", "").Replace(r.Query)
	}
	return all
}

func checkAutoscaler(t *testing.T, m *manifest, all []manifest) {
	t.Helper()
	if findManifest(m.Spec.Target.Kind, m.Spec.Target.Name, all) == nil || m.Spec.Least < 1 || m.Spec.Most < m.Spec.Least {
		t.Errorf("the autoscaler %s is of %+v, which is not there, or has wrong bounds", m.Metadata.Name, m.Spec.Target)
	}
	documented, err := os.ReadFile(deployed + "METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range m.Spec.Metrics {
		query := adapterRules(t)[metric.Pods.Metric.Name]
		if query == "" {
			t.Errorf("the autoscaler %s uses %s, which the adapter's rules do not make", m.Metadata.Name, metric.Pods.Metric.Name)
		}
		for _, s := range metricsOf(query).selected {
			if !strings.Contains(string(documented), "\n| `"+s.metric+"` |") {
				t.Errorf("the adapter asks for %s, which deploy/METRICS.md does not list", s.metric)
			}
		}
	}
}

// A monitor makes jobs with the names that rules and dashboards use.
func checkMonitor(t *testing.T, m *manifest, all []manifest) {
	t.Helper()
	var of []string
	for _, s := range all {
		if s.Kind == "Service" && hasLabels(s.Metadata.Labels, m.Spec.Selector.MatchLabels) {
			of = append(of, s.Metadata.Name)
			for _, e := range m.Spec.Endpoints {
				if !slices.ContainsFunc(s.Spec.Ports, func(p servicePort) bool { return p.Name == e.Port }) {
					t.Errorf("the monitor %s looks at the port %s, which the service %s does not have", m.Metadata.Name, e.Port, s.Metadata.Name)
				}
				if want := s.Metadata.Name + "." + s.Metadata.Namespace + ".svc"; e.TLS.ServerName != want {
					t.Errorf("the monitor %s expects a certificate for %s, want %s", m.Metadata.Name, e.TLS.ServerName, want)
				}
			}
		}
	}
	if !slices.Equal(of, []string{m.Metadata.Name}) {
		t.Errorf("the monitor %s makes jobs of the services %q", m.Metadata.Name, of)
	}
}

// The configuration in the base is valid, and workers serve its pools.
func TestTheConfigurationOfTheBase(t *testing.T) {
	doc, err := broker.ReadConfig(kubernetesFolder + "base/hooks.yaml")
	if err != nil || len(doc.Warnings) > 0 {
		t.Fatalf("%v %v", err, doc)
	}
	served := map[string]bool{"default": true, "": true}
	for _, m := range written(t, "base") {
		for _, c := range m.Spec.Template.Spec.Containers {
			for _, arg := range c.Args {
				if pool, ok := strings.CutPrefix(arg, "--pool="); ok {
					served[pool] = true
					if m.Spec.Template.Metadata.Labels["hookfabric/pool"] != pool {
						t.Errorf("%s serves the pool %s and says otherwise in its labels", m.Metadata.Name, pool)
					}
				}
			}
		}
	}
	for _, h := range doc.Config.Hooks {
		if !served[h.Pool] {
			t.Errorf("no worker serves the pool %s of the hook %s", h.Pool, h.Name)
		}
	}
}

// The scripts in the manifests that unpack the realm do so, also when it changes.
func TestTheRealmIsUnpacked(t *testing.T) {
	var once, follow string
	for _, m := range written(t, "base") {
		for _, c := range slices.Concat(m.Spec.Template.Spec.Init, m.Spec.Template.Spec.Containers) {
			switch c.Name {
			case "realm":
				once = c.Args[0]
			case "realm-follower":
				follow = c.Args[0]
			}
		}
	}
	dir := t.TempDir()
	made, at := filepath.Join(dir, "made"), strings.NewReplacer("/data", filepath.Join(dir, "data"), "/realm/", filepath.Join(dir, "realm")+"/", "sleep 5", "sleep 0.05")
	for _, folder := range []string{"made/seeds", "data", "realm"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	pack := func(content string) {
		t.Helper()
		write(t, made, "realm.json", content)
		write(t, filepath.Join(made, "seeds"), content, content)
		// As the kubelet does it: the file is replaced in one moment.
		out, err := exec.Command("sh", "-c", `tar -C "$1" -cf "$2.new" . && mv "$2.new" "$2"`, "sh", made, filepath.Join(dir, "realm", "auth.tar")).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	has := func(content string) bool {
		realm, _ := os.ReadFile(filepath.Join(dir, "data", "auth", "realm.json"))
		seed, _ := os.ReadFile(filepath.Join(dir, "data", "auth", "seeds", content))
		return string(realm) == content && string(seed) == content
	}
	write(t, filepath.Join(dir, "realm"), "cluster.secret", "s")
	pack("first")
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", at.Replace(once)).CombinedOutput(); err != nil || !has("first") {
		t.Fatalf("%v\n%s", err, out)
	}
	if secret, err := os.Stat(filepath.Join(dir, "data", "cluster.secret")); err != nil || secret.Mode().Perm() != 0o600 {
		t.Errorf("the cluster's secret is %v, %v", secret, err)
	}
	p := start(t, "sh", "-c", at.Replace(follow))
	pack("second")
	if err := eventually("the change is there", func() bool { return has("second") }); err != nil {
		t.Errorf("%v; it said:\n%s", err, p.said)
	}
	info, err := os.Stat(filepath.Join(dir, "data", "auth"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the realm's folder is %v, %v", info, err)
	}
}

// secretNames returns the secrets that manifests need and do not contain.
func secretNames(all []manifest) []string {
	names := map[string]bool{}
	for _, m := range pods(all) {
		for _, v := range m.Spec.Template.Spec.Volumes {
			if v.Secret != nil {
				names[v.Secret.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

var errNoRoutes = errors.New("there are no --routes")

// routesOf returns the addresses in a broker's --routes flag.
func routesOf(args []string) ([]string, error) {
	for _, arg := range args {
		if routes, ok := strings.CutPrefix(arg, "--routes="); ok {
			return strings.Split(routes, ","), nil
		}
	}
	return nil, errNoRoutes
}
