package e2e_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// imagesRun returns the images, and the command that each runs by default.
func imagesRun() map[string]string {
	return map[string]string{"hookfabric": "broker", "hookfabric-worker": "hookworker"}
}

// commandOf is what a container runs: the words after its image's own, or instead of them.
func commandOf(image string, command, args []string) []string {
	name, _, _ := strings.Cut(image, ":")
	if len(command) == 0 {
		command = []string{imagesRun()[name]}
	}
	return slices.Concat(command, args)
}

// flagOf is the value of a flag, as --flag=value.
func flagOf(words []string, flag string) (string, bool) {
	for _, w := range words {
		if v, ok := strings.CutPrefix(w, "--"+flag+"="); ok {
			return v, true
		}
	}
	return "", false
}

func checkWorkload(t *testing.T, m *manifest, all []manifest) {
	t.Helper()
	name, pod := m.Metadata.Name, &m.Spec.Template.Spec
	if len(m.Spec.Selector.MatchLabels) == 0 || !hasLabels(m.Spec.Template.Metadata.Labels, m.Spec.Selector.MatchLabels) {
		t.Errorf("%s selects %v, and its pods have %v", name, m.Spec.Selector.MatchLabels, m.Spec.Template.Metadata.Labels)
	}
	if pod.ServiceAccount != "" && findManifest("ServiceAccount", pod.ServiceAccount, all) == nil {
		t.Errorf("%s runs as %s, who is not there", name, pod.ServiceAccount)
	}
	if pod.Automount == nil || *pod.Automount {
		t.Errorf("%s can ask the Kubernetes API", name)
	}
	if s := pod.Security; s.NonRoot == nil || !*s.NonRoot || s.Seccomp.Type != "RuntimeDefault" || s.User == nil || *s.User != 65532 {
		t.Errorf("%s runs its pods with %+v", name, s)
	}
	if grace := time.Duration(pod.Grace) * time.Second; m.Kind != "DaemonSet" && grace <= stopTimes(t) {
		t.Errorf("%s gives its pods %s to stop, which take up to %s", name, grace, stopTimes(t))
	}
	for i := range pod.Init {
		checkContainer(t, m, &pod.Init[i], all)
	}
	for i := range pod.Containers {
		c := &pod.Containers[i]
		checkContainer(t, m, c, all)
		if words := commandOf(c.Image, c.Command, c.Args); slices.Contains(words, "--cluster-name=hookfabric") {
			checkRoutes(t, m, words, all)
		}
	}
}

func checkContainer(t *testing.T, m *manifest, c *container, all []manifest) {
	t.Helper()
	where := m.Metadata.Name + ", container " + c.Name
	image, tag, _ := strings.Cut(c.Image, ":")
	if imagesRun()[image] == "" || tag != "" && tag != "dev" {
		t.Errorf("%s has the image %q", where, c.Image)
	}
	words := commandOf(c.Image, c.Command, c.Args)
	understands(t, where, words)
	for _, v := range c.Env {
		if strings.HasPrefix(v.Name, program.EnvPrefix) {
			takesVariable(t, where, v.Name, words[:min(2, len(words))]...)
		} else if v.From.Field.Path != "" && !slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "=$("+v.Name+")") }) {
			t.Errorf("%s has the variable %s, and no flag takes it", where, v.Name)
		}
	}
	s := c.Security
	if s.Escalation == nil || *s.Escalation || !s.ReadOnly || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("%s runs with %+v", where, s)
	}
	if c.Resources["requests"]["memory"] == "" || c.Resources["limits"]["memory"] == "" || c.Resources["requests"]["cpu"] == "" {
		t.Errorf("%s asks for %v", where, c.Resources)
	}
	checkMounts(t, where, m, c, words, all)
	checkPorts(t, where, c, words)
}

// What flags name lies on a volume, and volumes are there.
func checkMounts(t *testing.T, where string, m *manifest, c *container, words []string, all []manifest) {
	t.Helper()
	for _, mount := range c.Mounts {
		claimed := slices.ContainsFunc(m.Spec.Claims, func(c claim) bool { return c.Metadata.Name == mount.Name })
		i := slices.IndexFunc(m.Spec.Template.Spec.Volumes, func(v volume) bool { return v.Name == mount.Name })
		switch {
		case claimed:
		case i < 0:
			t.Errorf("%s mounts %s, which is no volume", where, mount.Name)
		case m.Spec.Template.Spec.Volumes[i].ConfigMap != nil && findManifest("ConfigMap", m.Spec.Template.Spec.Volumes[i].ConfigMap.Name, all) == nil:
			t.Errorf("%s mounts a ConfigMap that is not there: %s", where, m.Spec.Template.Spec.Volumes[i].ConfigMap.Name)
		}
	}
	for _, w := range words {
		_, file, _ := strings.Cut(w, "=")
		if !strings.HasPrefix(w, "--") || !strings.HasPrefix(file, "/") {
			continue
		}
		on := slices.ContainsFunc(c.Mounts, func(m mount) bool { return file == m.Path || strings.HasPrefix(file, m.Path+"/") })
		if !on {
			t.Errorf("%s names %s, which is on none of its volumes", where, w)
		}
	}
}

// A container says which ports its program listens at, and is asked how it is where
// the program answers that, in the way it does.
func checkPorts(t *testing.T, where string, c *container, words []string) {
	t.Helper()
	has := map[string]int{}
	for _, p := range c.Ports {
		has[p.Name] = p.Port
	}
	for name, flag := range map[string]string{"nats": "listen", "cluster": "cluster-listen", "http": "http"} {
		address, ok := flagOf(words, flag)
		if !ok || address == "" {
			if has[name] != 0 && (name != "cluster") {
				t.Errorf("%s has the port %s, and does not listen there", where, name)
			}
			continue
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil || host != "0.0.0.0" || fmt.Sprint(has[name]) != port {
			t.Errorf("%s listens at %s, and says that it is %d: %v", where, address, has[name], err)
		}
		if _, ok := flagOf(words, "tls-cert"); !ok {
			t.Errorf("%s listens at %s without a certificate", where, address)
		}
	}
	for path, p := range map[string]*podProbe{"/healthz": c.Live, "/readyz": c.Ready} {
		if p != nil && (p.HTTP.Path != path || p.HTTP.Port != "http" || p.HTTP.Scheme != "HTTPS") {
			t.Errorf("%s is asked at %+v, want %s by HTTPS", where, p.HTTP, path)
		}
		if p == nil && has["http"] != 0 {
			t.Errorf("%s is not asked at %s", where, path)
		}
	}
	if p := c.Ready; p != nil && has["nats"] != 0 && p.Period*p.Failures < electionSeconds {
		t.Errorf("%s is out of its service after %d s, and an election that no broker is ready in takes up to %d s", where, p.Period*p.Failures, electionSeconds)
	}
}

// electionSeconds is how long a cluster may have no leader, in which its brokers answer and
// say that they are not ready.
const electionSeconds = 10

// checkRoutes checks that the brokers of a StatefulSet have the host names that Kubernetes gives
// them as routes.
func checkRoutes(t *testing.T, m *manifest, words []string, all []manifest) {
	t.Helper()
	routes, err := routesOf(words)
	if err != nil {
		t.Fatal(err)
	}
	peers := findManifest("Service", m.Spec.ServiceName, all)
	if peers == nil || peers.Spec.ClusterIP != "None" || !peers.Spec.NotReady || m.Spec.PodManagement != "Parallel" {
		t.Fatalf("%s needs a headless service %s that names pods before they are ready, and all pods at once", m.Metadata.Name, m.Spec.ServiceName)
	}
	var want []string
	for i := range m.Spec.Replicas {
		want = append(want, fmt.Sprintf("%s-%d.%s.%s.svc:%d", m.Metadata.Name, i, m.Spec.ServiceName, m.Metadata.Namespace, portsOf(m)["cluster"]))
	}
	if m.Metadata.Namespace != "" && !slices.Equal(routes, want) {
		t.Errorf("%s has the routes\n%q, want\n%q", m.Metadata.Name, routes, want)
	}
}

// TestManifestsConnectToTheService checks that clients connect to the brokers' service and its
// port.
func TestManifestsConnectToTheService(t *testing.T) {
	base := written(t, "base")
	s := findManifest("Service", "hookfabric-broker", base)
	want := fmt.Sprintf("tls://%s.%s.svc:%d", s.Metadata.Name, s.Metadata.Namespace, s.Spec.Ports[0].Port)
	n := 0
	for _, m := range pods(slices.Concat(base, written(t, "shims"))) {
		for _, c := range m.Spec.Template.Spec.Containers {
			if url, ok := flagOf(c.Args, "nats"); ok {
				if n++; url != want {
					t.Errorf("%s connects to %s, want %s", m.Metadata.Name, url, want)
				}
			}
		}
	}
	if n != 2 {
		t.Errorf("%d containers connect, want a worker and a shim", n)
	}
}

// TestTheGuideNamesTheSecrets checks that the guide explains how to make each secret.
func TestTheGuideNamesTheSecrets(t *testing.T) {
	guide, err := os.ReadFile(deployed + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range secretNames(slices.Concat(written(t, "base"), written(t, "shims"))) {
		if !strings.Contains(string(guide), name) {
			t.Errorf("%s does not say how to make the secret %s", filepath.Base(deployed+"README.md"), name)
		}
	}
}
