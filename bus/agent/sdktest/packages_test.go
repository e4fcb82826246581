package sdktest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// A pythonPackage is a folder that pip installs.
type pythonPackage struct {
	name    string   // of the distribution
	sources []string // in the folder
	files   []string // that an installation adds
}

func pythonPackages() map[string]pythonPackage {
	hooks := []string{"hookfabric/__init__.py", "hookfabric/__init__.pyi", "hookfabric/_loop.py", "hookfabric/py.typed"}
	return map[string]pythonPackage{
		"../python":               {"hookfabric", []string{"hookfabric.py", "py.typed"}, []string{"hookfabric/__init__.py", "hookfabric/py.typed"}},
		"../../../workers/python": {"hookfabric-hooks", hooks, hooks},
	}
}

// newestVersion returns the newest version in the changelog, or 0.0.0 before the first release.
func newestVersion(t *testing.T) string {
	t.Helper()
	if found := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\]`).FindStringSubmatch(text(t, "../../../CHANGELOG.md")); found != nil {
		return found[1]
	}
	return "0.0.0"
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestPythonPackagesHaveTheirMetadata(t *testing.T) {
	for dir, want := range pythonPackages() {
		t.Run(want.name, func(t *testing.T) {
			project := text(t, filepath.Join(dir, "pyproject.toml"))
			for _, line := range []string{`name = "` + want.name + `"`, `version = "` + newestVersion(t) + `"`, `readme = "README.md"`, `requires-python = ">=3.9"`} {
				if !strings.Contains(project, "\n"+line+"\n") {
					t.Errorf("%s/pyproject.toml lacks the line %s", dir, line)
				}
			}
			install := "pip install ./" + strings.TrimLeft(filepath.ToSlash(filepath.Join("bus/agent/sdktest", dir)), "/")
			if readme := text(t, filepath.Join(dir, "README.md")); !strings.Contains(readme, install) {
				t.Errorf("%s/README.md lacks %q", dir, install)
			}
			for _, file := range want.sources {
				if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPipInstallsThePythonPackages installs copies of the folders without a network. It
// needs the build backend hatchling (Debian's package python3-hatchling).
func TestPipInstallsThePythonPackages(t *testing.T) {
	t.Parallel()
	python := pythonWith(t, "pip", "hatchling")
	for dir, want := range pythonPackages() {
		t.Run(want.name, func(t *testing.T) {
			t.Parallel()
			source, target := t.TempDir(), t.TempDir()
			if err := os.CopyFS(source, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target", target, source)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PIP_ROOT_USER_ACTION=ignore", "PYTHONDONTWRITEBYTECODE=1", "PIP_NO_COMPILE=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if diff := cmp.Diff(want.files, installed(t, target)); diff != "" {
				t.Errorf("an installation adds other files (-want +got):\n%s", diff)
			}
			check := exec.CommandContext(t.Context(), python, "-B", "-c", "import hookfabric; [getattr(hookfabric, name) for name in hookfabric.__all__]")
			check.Env = append(os.Environ(), "PYTHONPATH="+target)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// pythonWith returns a Python interpreter that has some modules.
func pythonWith(t *testing.T, modules ...string) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		python, err := exec.LookPath(name)
		if err == nil && exec.CommandContext(t.Context(), python, "-c", "import "+strings.Join(modules, ", ")).Run() == nil {
			return python
		}
	}
	t.Skipf("SKIPPED: no Python with the modules %s, so the Python packages are not installed", strings.Join(modules, " and "))
	return ""
}

// installed returns the files of modules below a folder.
func installed(t *testing.T, dir string) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.py", "*/*.py*", "*/py.typed"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			relative, err := filepath.Rel(dir, file)
			if err != nil {
				t.Fatal(err)
			}
			if relative = filepath.ToSlash(relative); !slices.Contains(files, relative) {
				files = append(files, relative)
			}
		}
	}
	slices.Sort(files)
	return files
}

// manifest is the part of package.json that the tests compare.
type manifest struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Type    string   `json:"type"`
	Files   []string `json:"files"`
	Exports map[string]struct {
		Types   string `json:"types"`
		Default string `json:"default"`
	} `json:"exports"`
}

func TestTheNpmPackageHasItsMetadata(t *testing.T) {
	var m manifest
	if err := schema.Unmarshal([]byte(text(t, "../typescript/package.json")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Name != "hookfabric" || m.Version != newestVersion(t) || m.Type != "module" {
		t.Errorf("package.json has the name %q, version %q and type %q; want hookfabric, %s, module", m.Name, m.Version, m.Type, newestVersion(t))
	}
	for _, file := range []string{m.Exports["."].Types, m.Exports["."].Default} {
		if !slices.Contains(m.Files, strings.TrimPrefix(file, "./")) {
			t.Errorf("package.json exports %q, which is not in its files", file)
		}
	}
	for _, file := range m.Files {
		if _, err := os.Stat(filepath.Join("../typescript", file)); err != nil {
			t.Error(err)
		}
	}
}

// TestNpmInstallsThePackage installs the folder as a project's dependency, without a network.
func TestNpmInstallsThePackage(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("SKIPPED: no npm on the PATH, so the npm package is not installed")
	}
	dir, err := filepath.Abs("../typescript")
	if err != nil {
		t.Fatal(err)
	}
	project := t.TempDir()
	cmd := exec.CommandContext(t.Context(), npm, "install", "--offline", "--silent", "--no-audit", "--no-fund", "--prefix", project, dir)
	cmd.Dir, cmd.Env = project, append(os.Environ(), "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	check := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", `import { Client, claudeHooks } from "hookfabric"; console.log(typeof Client, typeof claudeHooks)`)
	check.Dir = project
	if out, err := check.CombinedOutput(); err != nil || string(out) != "function function\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
