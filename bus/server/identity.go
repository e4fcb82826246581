package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// identityFile holds the names of the server and the cluster in a data directory.
const identityFile = "server.json"

// aloneName is the name of a server without a cluster.
const aloneName = "hookfabric"

// An identity is a server's name in its cluster. It belongs to the data directory.
type identity struct {
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
}

// identify returns the server's name. It rejects a directory of a single server, or of another cluster,
// because the cluster would delete its streams.
func (o *Options) identify() (string, error) {
	known, err := o.readIdentity()
	switch {
	case err != nil:
		return "", err
	case o.Cluster == nil && known.Cluster == "":
		return aloneName, nil
	case o.Cluster == nil:
		return "", fmt.Errorf("the data directory %s belongs to a server of the cluster %s; start it with --cluster-name %s, or name another directory: %w",
			o.Dir, known.Cluster, known.Cluster, errAlone)
	case known.Cluster == "":
		return o.newIdentity()
	case known.Cluster != o.Cluster.Name:
		return "", fmt.Errorf("the data directory %s belongs to a server of the cluster %s, not %s; use that name, or name another directory", o.Dir, known.Cluster, o.Cluster.Name)
	case o.Cluster.Server != "" && o.Cluster.Server != known.Name:
		return "", fmt.Errorf("the data directory %s belongs to the server %s; remove --name, or name another directory for %s", o.Dir, known.Name, o.Cluster.Server)
	}
	return known.Name, nil
}

func (o *Options) readIdentity() (known identity, err error) {
	path := filepath.Join(o.Dir, identityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = schema.Unmarshal(data, &known)
	}
	if err == nil && (known.Name == "" || known.Cluster == "") {
		err = errors.New("the server or the cluster is missing in it")
	}
	if err != nil {
		return known, fmt.Errorf("cannot read %s, which names the server of the data directory: %w; restore it from a backup", path, err)
	}
	return known, nil
}

// newIdentity makes the identity of a new directory.
func (o *Options) newIdentity() (string, error) {
	if streams, _ := os.ReadDir(filepath.Join(o.Dir, "nats", "jetstream")); len(streams) > 0 {
		return "", fmt.Errorf("the data directory %s belongs to a single server; start the cluster's servers with new directories, "+
			"apply the configuration there, and let agents read their waiting messages here: %w", o.Dir, errAlone)
	}
	mine := identity{Name: o.Cluster.Server, Cluster: o.Cluster.Name}
	if mine.Name == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = "broker"
		}
		mine.Name = host[:min(len(host), 48)] + "-" + strings.ToLower(rand.Text()[:8])
	}
	if strings.ContainsAny(mine.Name, " \t\r\n*>") || len(mine.Name) > 64 {
		return "", fmt.Errorf("the server's name is %q; use at most 64 characters, without spaces and wildcards", mine.Name)
	}
	data, err := schema.Marshal(mine)
	if err != nil {
		return "", err
	}
	path := filepath.Join(o.Dir, identityFile)
	if err := errors.Join(os.WriteFile(path+".new", append(data, '\n'), 0o600), os.Rename(path+".new", path)); err != nil {
		return "", fmt.Errorf("cannot store the identity of the server: %w", err)
	}
	return mine.Name, nil
}
