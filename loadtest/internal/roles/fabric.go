package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	broker "github.com/hookfabric/hookfabric/cmd/broker/app"
	hookworker "github.com/hookfabric/hookfabric/cmd/hookworker/app"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// BrokerConfig configures a broker.
type BrokerConfig struct {
	// Hooks is the path of the hooks.yaml.
	Hooks string `json:"hooks"`
	// Data is the broker's own directory.
	Data string `json:"data"`
	// Listen is the broker's address, so that a restarted broker is where its clients look
	// for it; empty: any free port.
	Listen string `json:"listen,omitzero"`
	// NATS is the URL of a server to use instead of the embedded one; empty: the embedded
	// one.
	NATS string `json:"nats,omitzero"`
	// Sync is how often it syncs to disk; 0: at every write.
	Sync schema.Duration `json:"sync,omitzero"`
	// Record selects which verdicts it records; empty: the broker's default. RecordBytes is
	// the size of the record; empty: the broker's default.
	Record      string `json:"record,omitzero"`
	RecordBytes string `json:"record_bytes,omitzero"`
	// AgentRate is how many events a second it judges for one agent; 0: no limit.
	AgentRate float64 `json:"agent_rate,omitzero"`
	// Cluster configures the cluster that it is in; nil: no cluster.
	Cluster *ClusterConfig `json:"cluster,omitzero"`
}

// ClusterConfig configures the cluster that a broker is in.
type ClusterConfig struct {
	// Server is the name of its server in the cluster.
	Server string `json:"server"`
	// Listen is the address for the other servers, and Routes are the addresses of all.
	Listen string   `json:"listen"`
	Routes []string `json:"routes"`
}

// flags returns the flags of settings that are not the broker's defaults.
func (c *BrokerConfig) flags() (flags []string) {
	if c.AgentRate > 0 {
		flags = append(flags, "--agent-rate", strconv.FormatFloat(c.AgentRate, 'f', -1, 64))
	}
	if c.Record != "" {
		flags = append(flags, "--record", c.Record)
	}
	if c.RecordBytes != "" {
		flags = append(flags, "--record-bytes", c.RecordBytes)
	}
	if l := c.Cluster; l != nil {
		flags = append(flags, "--cluster-name", "loadtest", "--name", l.Server, "--cluster-listen", l.Listen, "--routes", strings.Join(l.Routes, ","))
	}
	return flags
}

// WorkerConfig configures a hookworker.
type WorkerConfig struct {
	// NATS is the URL of the broker's server.
	NATS string `json:"nats"`
	// Creds is the file of its credentials; empty: the server needs none.
	Creds string `json:"creds,omitzero"`
	// Pool is the one pool it serves.
	Pool string `json:"pool"`
}

// StartBroker runs a whole broker, embedded server included, through the same entry as the
// command. It waits until the broker is ready, and reports its [Address].
func StartBroker(ctx context.Context, c BrokerConfig) (*proc.Role, error) {
	free, err := bustest.FindAddresses(2)
	if err != nil {
		return nil, err
	}
	listen, web := free[0], free[1]
	url := c.NATS
	where := []string{"--nats", url}
	if url == "" {
		listen = cmp.Or(c.Listen, listen)
		url = "nats://" + listen
		where = []string{"--data", c.Data, "--listen", listen, "--sync", c.Sync.Std().String()}
	}
	args := slices.Concat([]string{"serve", "--config", c.Hooks, "--http", web}, where, c.flags())
	role := Run(ctx, broker.Main, args...)
	if err := ready(ctx, "http://"+web+"/readyz", role.ended); err != nil {
		return nil, errors.Join(err, role.Close())
	}
	return &proc.Role{Facts: Address{URL: url}, Do: Settle, Close: role.Close}, nil
}

// startHookWorker runs a hookworker, and waits until it has the configuration.
func startHookWorker(ctx context.Context, c WorkerConfig) (*proc.Role, error) {
	free, err := bustest.FindAddresses(1)
	if err != nil {
		return nil, err
	}
	web := free[0]
	role := Run(ctx, hookworker.Main, "--nats", c.NATS, "--creds", c.Creds, "--pool", c.Pool, "--http", web)
	if err := ready(ctx, "http://"+web+"/readyz", role.ended); err != nil {
		return nil, errors.Join(err, role.Close())
	}
	return &proc.Role{Do: Settle, Close: role.Close}, nil
}

// A Program is a program of the fabric that runs in this process.
type Program struct {
	stop  context.CancelFunc
	ended chan struct{}
	code  int
}

// Run runs main, the Main of one of the fabric's commands.
func Run(ctx context.Context, main func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int, args ...string) *Program {
	ctx, stop := context.WithCancel(ctx)
	r := &Program{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		// The program's output is for people, so it goes to the same place as its log.
		r.code = main(ctx, args, strings.NewReader(""), os.Stderr, os.Stderr)
	}()
	return r
}

// Close ends the program, and returns an error if it failed.
func (r *Program) Close() error {
	r.stop()
	<-r.ended
	if r.code != 0 {
		return fmt.Errorf("it ended with the exit code %d", r.code)
	}
	return nil
}

// ready waits until url answers 200.
func ready(ctx context.Context, url string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("it was not ready within 30 s"))
	defer cancel()
	return load.Until(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		select {
		case <-ended:
			cancel()
			return errors.New("it ended before it was ready")
		default:
			return answers(ctx, url)
		}
	})
}

// answers returns an error unless url answers 200.
func answers(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

// fabricAsk asks the fabric through its own client, on one connection.
func fabricAsk(c *client.Client) ask {
	return func(ctx context.Context, e *schema.Event, _ int) (*schema.Verdict, error) {
		return c.Ask(ctx, e)
	}
}
