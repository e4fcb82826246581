package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/webhook"
)

// A server accepts what a worker signed with their common key.
func ExampleVerify() {
	key := "a key of sixteen bytes, or more"

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, schema.MaxEvent))
		if err == nil {
			err = webhook.Verify(r.Header, body, []byte(key), time.Now(), time.Minute)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if strings.Contains(string(body), "rm -rf") {
			http.Error(w, "not on this machine", http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusNoContent) // no opinion
	}))
	defer server.Close()

	runner := webhook.New(webhook.Options{Environ: []string{"POLICY_KEY=" + key}})
	defer runner.Close()
	handler, err := runner.Load(schema.Hook{Name: "policy", Type: schema.HTTP, Handler: server.URL, Sign: "POLICY_KEY"}, workers.Site{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, prompt := range []string{"List the folder.", "Run rm -rf /."} {
		result, err := handler.Handle(context.Background(), &schema.Event{HookType: schema.UserPromptSubmit, Prompt: prompt})
		fmt.Printf("%q %q %v\n", result.Decision, result.Reason, err)
	}
	// Output:
	// "" "" <nil>
	// "deny" "not on this machine" <nil>
}
