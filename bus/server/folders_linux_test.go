package server_test

import (
	"context"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/bus/server"
)

// TestAVolumeThatOthersCanReplaceIsLogged: storage drivers of Kubernetes make volumes with mode
// 0777 that belong to root, and a container without root cannot change that.
func TestAVolumeThatOthersCanReplaceIsLogged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=320m,mode=0777"); err != nil {
		t.Skipf("NOT TESTED: a volume takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	var log strings.Builder
	s, err := server.Start(t.Context(), server.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if said := log.String(); !strings.Contains(said, "the data directory is a volume") || !strings.Contains(said, "every user of this machine can replace the files in the folder "+dir) {
		t.Errorf("the log is %s", said)
	}
}
