package field

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// askIn limits how long an external fabric may take to return its configuration.
const askIn = 10 * time.Second

// openExternal checks that the fabric runs the scenario's hooks, and adds workers to it. It
// does not change the fabric's configuration: that belongs to its operator.
func (f *Field) openExternal(ctx context.Context) error {
	f.url = f.config.NATS
	running, version, err := f.running(ctx)
	if err != nil {
		return err
	}
	lacking, err := missing(f.config.Hooks, running)
	if err != nil {
		return err
	}
	if len(lacking) > 0 {
		return f.refuse(lacking, version)
	}
	f.host = plain(f.url)
	return f.addWorkers(ctx)
}

// plain returns the host and port of a server URL. It returns "" if links cannot lead
// there: the URL names several servers, or clients must authenticate.
func plain(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "nats" || u.User != nil || u.Port() == "" || strings.Contains(u.Host, ",") {
		return ""
	}
	return u.Host
}

// running returns the fabric's active configuration and its version; version 0: no
// configuration.
func (f *Field) running(ctx context.Context) (c *schema.Config, version uint64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askIn, fmt.Errorf("the fabric at %s did not report its configuration within %v", f.url, askIn))
	defer cancel()
	nc, err := bus.Connect(ctx, bus.Options{URL: f.url, Creds: f.config.Creds, Name: "loadtest field"})
	if err != nil {
		return nil, 0, err
	}
	defer nc.Close()
	var a schema.ConfigAnswer
	if err := roles.Control(ctx, nc, roles.Verb{Verb: "config"}, schema.ConfigRequest{Action: schema.ActionShow}, &a); err != nil {
		return nil, 0, fmt.Errorf("reading the configuration of the fabric at %s: %w; start a broker there, or name another server", f.url, err)
	}
	if a.Config == nil {
		return &schema.Config{}, 0, nil
	}
	return a.Config, a.Version, nil
}

// missing returns the names of the hooks of a hooks.yaml that the fabric does not run, or
// runs with other settings.
func missing(hooks string, running *schema.Config) ([]string, error) {
	wanted, err := hooksyaml.Read("hooks.yaml", []byte(hooks), hooksyaml.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the scenario's hooks: %w", err)
	}
	has, err := texts(running.Hooks)
	if err != nil {
		return nil, err
	}
	due, err := texts(wanted.Config.Hooks)
	if err != nil {
		return nil, err
	}
	var lacking []string
	for i, h := range wanted.Config.Hooks {
		if !slices.Contains(has, due[i]) {
			lacking = append(lacking, h.Name)
		}
	}
	slices.Sort(lacking)
	return lacking, nil
}

// texts returns hooks as JSON, to compare them.
func texts(hooks []schema.Hook) (all []string, err error) {
	for _, h := range hooks {
		body, err := schema.Marshal(h)
		if err != nil {
			return nil, fmt.Errorf("encoding a hook: %w", err)
		}
		all = append(all, string(body))
	}
	return all, nil
}

// refuse writes the configuration that the fabric would need into a file. Its error says
// how to apply it, and how to go back to the current version.
func (f *Field) refuse(lacking []string, version uint64) error {
	const enough = 5
	file, err := os.CreateTemp("", "loadtest-hooks-*.yaml")
	if err == nil {
		_, err = file.WriteString(f.config.Hooks)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	names := strings.Join(lacking[:min(len(lacking), enough)], ", ")
	if more := len(lacking) - enough; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	back := ""
	if version > 0 {
		back = fmt.Sprintf("; `broker config rollback %d --nats %s` restores the current configuration afterwards", version, f.url)
	}
	return fmt.Errorf("the fabric at %s does not run the hooks of this scenario: %s; the run changed nothing; run `broker apply %s --nats %s`, which replaces its configuration, and then repeat this command%s",
		f.url, names, file.Name(), f.url, back)
}
