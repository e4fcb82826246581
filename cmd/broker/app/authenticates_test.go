package app_test

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/cmd/broker/app"
)

// lines is a log that is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(data)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// An agent may answer only in its own sessions, however a NATS deployment authenticates it.
func TestTheBrokerChecksAnswersIfNATSAuthenticates(t *testing.T) {
	t.Parallel()
	user := &server.User{Username: "broker", Password: "secret"}
	for name, c := range map[string]struct {
		opt   server.Options
		as    *url.Userinfo
		asked bool
	}{
		"users and passwords": {server.Options{Users: []*server.User{user}}, url.UserPassword("broker", "secret"), true},
		"a token":             {server.Options{Authorization: "secret"}, url.User("secret"), true},
		"no authentication":   {server.Options{}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.opt.Host, c.opt.Port, c.opt.NoSigs, c.opt.NoLog, c.opt.JetStream, c.opt.StoreDir = "127.0.0.1", server.RANDOM_PORT, true, true, true, t.TempDir()
			s, err := server.NewServer(&c.opt)
			if err != nil {
				t.Fatal(err)
			}
			s.Start()
			t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
			if !s.ReadyForConnections(time.Minute) {
				t.Fatal("the server does not start")
			}
			at, err := url.Parse(s.ClientURL())
			if err != nil {
				t.Fatal(err)
			}
			at.User = c.as
			var log lines
			b, err := app.New(patient(t), app.Options{NATS: at.String(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close(context.Background()) })
			nc, err := nats.Connect(at.String())
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			m, err := nc.RequestWithContext(patient(t), "hook.v1.ctl.answer.a", []byte(`{"session":"of others","content":"believe me"}`))
			if err != nil {
				t.Fatal(err)
			}
			why := m.Header.Get("Nats-Service-Error")
			if refused := strings.Contains(why, "does not take part"); refused != c.asked || !refused && why != "" {
				t.Errorf("the answer: %s %s", why, m.Data)
			}
			said := log.String()
			if strings.Contains(said, "does not authenticate its clients") == c.asked || strings.Contains(said, "secret") {
				t.Errorf("the broker logged: %s", said)
			}
		})
	}
}
