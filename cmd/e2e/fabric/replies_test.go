package fabric_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/server/access"
)

// granted are the subjects on which a role may publish, as one may write them.
func granted(t *testing.T, g access.Grant) (all []string) {
	t.Helper()
	p, err := g.Permissions("_INBOX_U")
	if err != nil {
		t.Fatal(err)
	}
	verbs := []string{"status", "config", "hooks", "freeze", "thaw", "inject", "pending", "withdraw", "ack", "drain", "fetch", "answer", "mode", "checkpoint",
		"round", "policy", "record", "keep", "part", "follow"}
	for _, subject := range p.Publish {
		if subject != "hook.v1.ctl.*.*" {
			all = append(all, strings.NewReplacer(".>", ".PreToolUse", "*", "x").Replace(subject))
			continue
		}
		for _, verb := range verbs {
			all = append(all, "hook.v1.ctl."+verb+".a", "hook.v1.ctl."+verb+"._")
		}
	}
	return all
}

// stored are the keys below a prefix that a stream holds.
func stored(t *testing.T, js jetstream.JetStream, stream, prefix string) map[string]bool {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for subject := range info.State.Subjects {
		keys[strings.TrimPrefix(subject, prefix)] = true
	}
	return keys
}

// TestScenariosOfAnswers checks replies that a client directs to the subjects of streams. The
// client names the reply subject, and brokers and the server may publish to more subjects than the
// client. No request may therefore make them store an answer, except requests of operators, who may
// store content anyway.
func TestScenariosOfAnswers(t *testing.T) {
	operators := []string{"$O.hook_objects.C.x", "$O.hook_objects.M.x",
		"$JS.API.STREAM.INFO.OBJ_hook_objects", "$JS.API.STREAM.MSG.GET.OBJ_hook_objects", "$JS.API.STREAM.PURGE.OBJ_hook_objects",
		"$JS.API.STREAM.INFO.hook_record", "$JS.API.CONSUMER.CREATE.hook_record.x", "$JS.API.CONSUMER.DELETE.hook_record.x"}
	var all []scenario
	for is, c := range map[string]struct {
		grant access.Grant
		can   []string
	}{
		"of an agent":        {access.Grant{Role: access.Agent, Agents: []string{"a"}}, nil},
		"of a host":          {access.Grant{Role: access.Host, Agents: []string{access.Everyone}}, nil},
		"of a worker":        {access.Grant{Role: access.Worker, Pools: []string{"go"}}, nil},
		"of an orchestrator": {access.Grant{Role: access.Orchestrator, Agents: []string{"a"}}, nil},
		"of an operator":     {access.Grant{Role: access.Operator}, operators},
	} {
		all = append(all, scenario{is, func(t *testing.T) {
			f := startAsking(t, `{presets: [delivery]}`)
			js, err := jetstream.New(f.as("all", access.Grant{Role: access.Broker}))
			if err != nil {
				t.Fatal(err)
			}
			nc := f.as("who", c.grant)
			subjects := granted(t, c.grant)
			for i, subject := range subjects {
				for _, bucket := range []string{"$KV.hook_config.probe.", "$O.hook_histories.M.probe."} {
					if err := nc.PublishRequest(subject, bucket+fmt.Sprint(i), []byte("{}")); err != nil {
						t.Fatal(err)
					}
				}
			}
			<-time.After(10 * time.Second) // no request takes longer
			synctest.Wait()
			keys := stored(t, js, "KV_hook_config", "$KV.hook_config.probe.")
			maps.Copy(keys, stored(t, js, "OBJ_hook_histories", "$O.hook_histories.M.probe."))
			var got []string
			for i, subject := range subjects {
				if keys[fmt.Sprint(i)] {
					got = append(got, subject)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.can)), got); diff != "" {
				t.Errorf("what is stored where the answer was to go (-want +got):\n%s", diff)
			}
		}})
	}
	inBubbles(t, all)
}
