package e2e_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
)

const dockerFolder = deployed + "docker/"

// A composition is compose.yaml. Its services have all keys that are shared by now.
type composition struct {
	Name     string              `yaml:"name"`
	Fabric   any                 `yaml:"x-fabric"`
	Broker   any                 `yaml:"x-broker"`
	Worker   any                 `yaml:"x-worker"`
	Services map[string]composed `yaml:"services"`
	Volumes  map[string]struct{} `yaml:"volumes"`
}

// A composed is one of its services.
type composed struct {
	Image string `yaml:"image"`
	Build struct {
		Context    string            `yaml:"context"`
		Dockerfile string            `yaml:"dockerfile"`
		Target     string            `yaml:"target"`
		Args       map[string]string `yaml:"args"`
	} `yaml:"build"`
	Hostname    string                       `yaml:"hostname"`
	Entrypoint  []string                     `yaml:"entrypoint"`
	Command     []string                     `yaml:"command"`
	Environment map[string]string            `yaml:"environment"`
	Ports       []string                     `yaml:"ports"`
	Volumes     []string                     `yaml:"volumes"`
	Tmpfs       []string                     `yaml:"tmpfs"`
	DependsOn   map[string]map[string]string `yaml:"depends_on"`
	Restart     string                       `yaml:"restart"`
	StopGrace   string                       `yaml:"stop_grace_period"`
	ReadOnly    bool                         `yaml:"read_only"`
	CapDrop     []string                     `yaml:"cap_drop"`
	SecurityOpt []string                     `yaml:"security_opt"`
	Profiles    []string                     `yaml:"profiles"`
	Health      struct {
		Test     []string `yaml:"test"`
		Interval string   `yaml:"interval"`
		Timeout  string   `yaml:"timeout"`
		Start    string   `yaml:"start_period"`
		Disable  bool     `yaml:"disable"`
	} `yaml:"healthcheck"`
}

func readComposition(t testing.TB) (c composition) {
	t.Helper()
	readStrictly(t, dockerFolder+"compose.yaml", &c)
	return c
}

// ours reports whether a service runs one of the fabric's images.
func (s *composed) ours() bool { return strings.HasPrefix(s.Image, "hookfabric") }

// words are what a service runs.
func (s *composed) words() []string {
	name, _, _ := strings.Cut(s.Image, ":")
	return commandOf(name, s.Entrypoint, s.Command)
}

// The services of compose.yaml agree with each other, with the images and with the programs.
func TestTheCompositionIsSound(t *testing.T) {
	c := readComposition(t)
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[source]; ok {
				continue
			}
			if _, err := os.Stat(filepath.Join(dockerFolder, source)); err != nil || source[0] != '.' {
				t.Errorf("%s mounts %s, which is no volume and no file: %v", name, source, err)
			}
		}
		for other := range s.DependsOn {
			if _, ok := c.Services[other]; !ok {
				t.Errorf("%s depends on %s, which is not there", name, other)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s is open to other machines at %s", name, p)
			}
		}
		checkHealth(t, name, &s)
		if s.ours() {
			checkComposed(t, name, &s)
		}
	}
}

// checkHealth checks that long-running services have a health check, and services that end have none.
func checkHealth(t *testing.T, name string, s *composed) {
	t.Helper()
	h, serves := &s.Health, s.Restart == "unless-stopped"
	if serves == h.Disable {
		t.Errorf("%s is restarted %q, and that its health is not looked at is %t", name, s.Restart, h.Disable)
	}
	if !serves {
		return
	}
	every, err := time.ParseDuration(h.Interval)
	within, err2 := time.ParseDuration(h.Timeout)
	if err := errors.Join(err, err2); err != nil || len(h.Test) < 2 || h.Test[0] != "CMD" || within >= every || h.Start == "" {
		t.Errorf("%s has the health check %+v, not one that runs a command, which ends before the next one begins: %v", name, *h, err)
	}
}

func checkComposed(t *testing.T, name string, s *composed) {
	t.Helper()
	if target := map[string]string{"fabric": "hookfabric:${VERSION:-dev}", "worker": "hookfabric-worker:${VERSION:-dev}"}[s.Build.Target]; s.Image != target {
		t.Errorf("%s has the image %s, and builds %s", name, s.Image, target)
	}
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
		t.Errorf("%s may do more than it must", name)
	}
	words := s.words()
	understands(t, name, words)
	if len(s.Health.Test) > 0 {
		understands(t, name+"'s health check", s.Health.Test[1:])
	}
	command := []string{"agentshim", "hook"}
	if base := filepath.Base(words[0]); base != "sh" {
		command = words[:min(2, len(words))]
	}
	for variable := range s.Environment {
		takesVariable(t, name, variable, command...)
	}
	routes, err := routesOf(words)
	if err != nil {
		return
	}
	if s.Hostname != name || s.StopGrace != "60s" || len(routes) != 3 || !slices.Contains(routes, name+":6222") {
		t.Errorf("the broker %s is called %s, stops within %s and has the routes %q", name, s.Hostname, s.StopGrace, routes)
	}
}

// Prometheus scrapes all processes of the composition under the job names that rules and dashboards use, and
// Grafana finds it and the dashboards.
func TestTheCompositionIsWatched(t *testing.T) {
	c := readComposition(t)
	text, err := os.ReadFile(dockerFolder + "prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range c.Services {
		at, ok := flagOf(s.Command, "http")
		if !ok {
			continue
		}
		job := "hookfabric-broker"
		if s.words()[0] == "hookworker" {
			job = "hookfabric-worker"
		}
		_, port, _ := strings.Cut(at, ":")
		if !regexp.MustCompile(`job_name: ` + job + `\n(?:    .*\n)*      - targets: \[.*\b` + name + `:` + port + `\b`).Match(text) {
			t.Errorf("the job %s does not scrape %s:%s", job, name, port)
		}
	}
	promtoolSyntax(t, dockerFolder+"prometheus.yaml")
	grafana, prometheus := c.Services["grafana"], c.Services["prometheus"]
	for file, want := range map[string]string{
		"datasources/hookfabric.yaml": "url: http://prometheus:9090\n",
		"dashboards/hookfabric.yaml":  "path: /var/lib/grafana/dashboards}",
	} {
		text, err := os.ReadFile(deployed + "grafana/provisioning/" + file)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("Grafana's %s does not say %q: %v", file, want, err)
		}
	}
	if !slices.Contains(grafana.Volumes, "../grafana/dashboards:/var/lib/grafana/dashboards:ro") || !slices.Contains(prometheus.Volumes, "../prometheus/rules.yaml:/etc/prometheus/rules.yaml:ro") {
		t.Error("Grafana or Prometheus does not get what is ours")
	}
}

// promtoolSyntax looks at a configuration whose other files lie elsewhere.
func promtoolSyntax(t *testing.T, file string) {
	t.Helper()
	t.Run("promtool", func(t *testing.T) { promtool(t, "check", "config", "--syntax-only", file) })
}

// The images are built with the language that the code wants, from programs that there
// are, and are the ones that compose.yaml and the manifests name.
func TestTheDockerfile(t *testing.T) {
	text, err := os.ReadFile(dockerFolder + "Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	for _, want := range []string{"FROM golang:" + language + " AS build\n", "\nFROM scratch AS fabric\n", " AS worker\n", "CGO_ENABLED=0"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile does not say %q", want)
		}
	}
	for _, m := range regexp.MustCompile(`\./cmd/(\w+)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat("../" + m[1] + "/main.go"); err != nil {
			t.Errorf("the Dockerfile builds %s: %v", m[1], err)
		}
	}
	stages := regexp.MustCompile(`(?m)^FROM `).Split(string(text), -1)
	for _, stage := range stages[2:] {
		name := regexp.MustCompile(`^\S+ AS (\w+)`).FindStringSubmatch(stage)[1]
		entry := regexp.MustCompile(`(?m)^ENTRYPOINT \["/usr/local/bin/(\w+)"\]$`).FindStringSubmatch(stage)
		image := map[string]string{"fabric": "hookfabric", "worker": "hookfabric-worker"}[name]
		if len(entry) != 2 || entry[1] != imagesRun()[image] || !strings.Contains(stage, "\nUSER 65532:65532\n") {
			t.Errorf("the image %s runs %q, want %s, as the user 65532", name, entry, imagesRun()[image])
		}
		if !strings.Contains(string(text), "--target "+name+" -t "+image+":dev ") {
			t.Errorf("the Dockerfile does not say how to build %s", image)
		}
		for _, m := range regexp.MustCompile(`(?m)CMD (\[.*\])$`).FindAllStringSubmatch(stage, -1) {
			words := regexp.MustCompile(`[^", \[\]]+`).FindAllString(m[1], -1)
			if words[0] == "serve" {
				words = slices.Concat([]string{entry[1]}, words)
			}
			understands(t, "the image "+name, words)
		}
	}
}

// The three brokers and two workers of compose.yaml, as processes of this machine with the
// certificates and credentials that prepare.sh makes: one cluster that judges.
func TestTheCompositionStarts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("NOT TRIED: there is no openssl here, so that the composition starts stays untested")
	}
	dir := t.TempDir()
	secrets := filepath.Join(dir, "secrets")
	prepare := func() {
		t.Helper()
		p := start(t, "sh", mustAbs(t, dockerFolder+"prepare.sh"), secrets, filepath.Join(dir, "realm"))
		if code, err := p.wait(); err != nil || code != 0 {
			t.Fatalf("prepare.sh ended with %d, %v:\n%s", code, err, p.said)
		}
	}
	prepare()
	made := sums(t, secrets)
	if prepare(); !maps.Equal(made, sums(t, secrets)) {
		t.Error("prepare.sh replaces existing files")
	}
	c := readComposition(t)
	here := newHere(t, &c, dir)
	var brokers []*process
	for _, name := range []string{"broker-1", "broker-2", "broker-3"} {
		s := c.Services[name]
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		// The realm is one volume, which all brokers have below their own.
		if err := os.Symlink(filepath.Join(dir, "realm", "auth"), filepath.Join(dir, name, "auth")); err != nil {
			t.Fatal(err)
		}
		brokers = append(brokers, start(t, "broker", here.words(name, s.Command)...))
	}
	for _, b := range brokers {
		b.mustSay(t, 0, `(?m)^hookfabric broker \S+ is ready$`)
	}
	for _, name := range []string{"worker-default", "worker-heavy"} {
		s := c.Services[name]
		start(t, "hookworker", here.words(name, s.Command)...).mustSay(t, 0, `msg=serving`)
		check := here.words(name, s.Health.Test[1:])
		if err := eventually("the health check of "+name+" finds it well", func() bool {
			code, err := start(t, check[0], check[1:]...).wait()
			return err == nil && code == 0
		}); err != nil {
			t.Error(err)
		}
	}
	health := here.words("broker-1", c.Services["broker-1"].Health.Test[2:])
	said := ""
	if err := eventually("the health check of a broker sees both workers", func() bool {
		p := start(t, "broker", health...)
		code, err := p.wait()
		said = p.said.String()
		return err == nil && code == 0 && strings.Count(said, "\nbroker ") == 3 && !strings.Contains(said, "NO WORKER")
	}); err != nil {
		t.Errorf("%v; it said:\n%s", err, said)
	}
	demo := c.Services["demo"]
	var env []string
	for k, v := range demo.Environment {
		env = append(env, k+"="+here.word("demo", v))
	}
	p := startWith(t, env, demo.Entrypoint[0], demo.Entrypoint[1:]...)
	p.mustSay(t, 0, `"decision":"deny","reason":"rm with -r or -f deletes`)
}

// mustAbs is a file's path for processes that start elsewhere.
func mustAbs(t testing.TB, file string) string {
	t.Helper()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A here translates a composition's words: its names are addresses of this machine, and
// its volumes folders.
type here struct {
	dir     string
	c       *composition
	address map[string]string // by host:port
	config  string
}

func newHere(t testing.TB, c *composition, dir string) *here {
	t.Helper()
	h := &here{dir: dir, c: c, address: map[string]string{}, config: mustAbs(t, deployed+"examples")}
	ports := []string{"4222", "6222", "8480"}
	free := bustest.FreeAddresses(t, len(ports)*len(c.Services))
	for name := range c.Services {
		for _, port := range ports {
			h.address[name+":"+port], free = free[0], free[1:]
		}
	}
	return h
}

func (h *here) words(service string, words []string) (all []string) {
	for _, w := range words {
		all = append(all, h.word(service, w))
	}
	return all
}

func (h *here) word(service, word string) string {
	var pairs []string
	for name, address := range h.address {
		pairs = append(pairs, name, address)
	}
	// On loopback HTTP is without TLS.
	pairs = append(pairs, "https://localhost:8480", "http://"+h.address[service+":8480"])
	for _, port := range []string{"4222", "6222", "8480"} {
		pairs = append(pairs, "0.0.0.0:"+port, h.address[service+":"+port], "localhost:"+port, h.address[service+":"+port])
	}
	s := h.c.Services[service]
	for _, v := range s.Volumes {
		source, at, _ := strings.Cut(v, ":")
		at = strings.TrimSuffix(at, ":ro")
		if folder, ok := strings.CutPrefix(source, "secrets-"); ok {
			pairs = append(pairs, at+"/", filepath.Join(h.dir, "secrets", folder)+"/")
		}
	}
	pairs = append(pairs, "/config", h.config, "/data", filepath.Join(h.dir, service), "/tmp/state", filepath.Join(h.dir, "state"))
	return strings.NewReplacer(pairs...).Replace(word)
}

// sums are the files of a folder, by what is in them.
func sums(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = string(data)
		if info, ierr := d.Info(); ierr == nil && info.Mode().Perm()&0o077 != 0 && !strings.Contains(path, "/public/") {
			t.Errorf("others may read %s", path)
		}
		return err
	})
	if err != nil || len(all) < 15 {
		t.Fatalf("%d files: %v", len(all), err)
	}
	return all
}
