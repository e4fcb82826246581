package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// Credentials may permit sending an event and not receiving the answer. The client
// returns an error at once, which does not look like an outage.
func TestCredentialsWithoutAnswersAreAnError(t *testing.T) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, Users: []*server.User{{
		Username: "a", Password: "a", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{">"}}, Subscribe: &server.SubjectPermission{Deny: []string{">"}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := client.Connect(ctx, client.Options{URL: strings.Replace(s.ClientURL(), "//", "//a:a@", 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		_, err = c.Ask(ctx, &schema.Event{HookType: schema.PreToolUse, AgentID: "a", ToolName: "Read"})
		if !errors.Is(err, client.ErrDenied) || !strings.Contains(err.Error(), "do not permit reading answers") {
			t.Errorf("%v", err)
		}
	}
}
