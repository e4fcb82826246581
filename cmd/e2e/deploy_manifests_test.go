package e2e_test

// Manifests are as much of Kubernetes' types as the fabric's use, so that a key that is
// misspelt is one that is not known. A quantity or a port may be a number or a word.

type podLabels map[string]string

type selector struct {
	MatchLabels podLabels `yaml:"matchLabels"`
}

type metadata struct {
	Name      string    `yaml:"name"`
	Namespace string    `yaml:"namespace"`
	Labels    podLabels `yaml:"labels"`
}

type manifest struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   metadata          `yaml:"metadata"`
	Automount  *bool             `yaml:"automountServiceAccountToken"` // of a ServiceAccount
	Data       map[string]string `yaml:"data"`                         // of a ConfigMap
	Spec       manifestSpec      `yaml:"spec"`
}

type manifestSpec struct {
	// Of what runs pods.
	ServiceName    string      `yaml:"serviceName"`
	Replicas       int         `yaml:"replicas"`
	PodManagement  string      `yaml:"podManagementPolicy"`
	Selector       anySelector `yaml:"selector"`
	Template       podTemplate `yaml:"template"`
	Strategy       strategy    `yaml:"strategy"`
	UpdateStrategy strategy    `yaml:"updateStrategy"`
	Claims         []claim     `yaml:"volumeClaimTemplates"`
	// Of a service.
	ClusterIP string        `yaml:"clusterIP"`
	NotReady  bool          `yaml:"publishNotReadyAddresses"`
	Ports     []servicePort `yaml:"ports"`
	// Of a budget.
	MaxUnavailable any `yaml:"maxUnavailable"`
	// Of an autoscaler.
	Target   targetRef      `yaml:"scaleTargetRef"`
	Least    int            `yaml:"minReplicas"`
	Most     int            `yaml:"maxReplicas"`
	Metrics  []scaleMetric  `yaml:"metrics"`
	Behavior map[string]any `yaml:"behavior"`
	// Of a network policy.
	PodSelector selector      `yaml:"podSelector"`
	PolicyTypes []string      `yaml:"policyTypes"`
	Ingress     []trafficRule `yaml:"ingress"`
	Egress      []trafficRule `yaml:"egress"`
	// Of a monitor.
	Endpoints []endpoint `yaml:"endpoints"`
}

// anySelector is that of a workload, which has matchLabels, or that of a service, which
// is labels.
type anySelector struct {
	MatchLabels podLabels `yaml:"matchLabels"`
	Component   string    `yaml:"app.kubernetes.io/component"`
}

// matching are the labels it wants.
func (s anySelector) matching() podLabels {
	if s.Component != "" {
		return podLabels{"app.kubernetes.io/component": s.Component}
	}
	return s.MatchLabels
}

type strategy struct {
	Rolling struct {
		MaxSurge       any `yaml:"maxSurge"`
		MaxUnavailable any `yaml:"maxUnavailable"`
	} `yaml:"rollingUpdate"`
	Type string `yaml:"type"`
}

type podTemplate struct {
	Metadata metadata `yaml:"metadata"`
	Spec     podSpec  `yaml:"spec"`
}

type podSpec struct {
	ServiceAccount string         `yaml:"serviceAccountName"`
	Automount      *bool          `yaml:"automountServiceAccountToken"`
	Grace          int            `yaml:"terminationGracePeriodSeconds"`
	Priority       string         `yaml:"priorityClassName"`
	Security       security       `yaml:"securityContext"`
	Spread         []podSpread    `yaml:"topologySpreadConstraints"`
	Affinity       map[string]any `yaml:"affinity"`
	Init           []container    `yaml:"initContainers"`
	Containers     []container    `yaml:"containers"`
	Volumes        []volume       `yaml:"volumes"`
}

type security struct {
	NonRoot    *bool `yaml:"runAsNonRoot"`
	User       *int  `yaml:"runAsUser"`
	Group      int   `yaml:"runAsGroup"`
	FSGroup    int   `yaml:"fsGroup"`
	FSPolicy   any   `yaml:"fsGroupChangePolicy"`
	Escalation *bool `yaml:"allowPrivilegeEscalation"`
	ReadOnly   bool  `yaml:"readOnlyRootFilesystem"`
	Seccomp    struct {
		Type string `yaml:"type"`
	} `yaml:"seccompProfile"`
	Capabilities struct {
		Drop []string `yaml:"drop"`
		Add  []string `yaml:"add"`
	} `yaml:"capabilities"`
}

type podSpread struct {
	MaxSkew     int      `yaml:"maxSkew"`
	TopologyKey string   `yaml:"topologyKey"`
	When        string   `yaml:"whenUnsatisfiable"`
	Labels      selector `yaml:"labelSelector"`
}

type container struct {
	Name      string              `yaml:"name"`
	Image     string              `yaml:"image"`
	Command   []string            `yaml:"command"`
	Args      []string            `yaml:"args"`
	Env       []variable          `yaml:"env"`
	Ports     []containerPort     `yaml:"ports"`
	Startup   *podProbe           `yaml:"startupProbe"`
	Live      *podProbe           `yaml:"livenessProbe"`
	Ready     *podProbe           `yaml:"readinessProbe"`
	Mounts    []mount             `yaml:"volumeMounts"`
	Security  security            `yaml:"securityContext"`
	Resources map[string]quantity `yaml:"resources"`
}

type quantity map[string]string

type variable struct {
	Name  string `yaml:"name"`
	Value string `yaml:"value"`
	From  struct {
		Field struct {
			Path string `yaml:"fieldPath"`
		} `yaml:"fieldRef"`
	} `yaml:"valueFrom"`
}

type containerPort struct {
	Name string `yaml:"name"`
	Port int    `yaml:"containerPort"`
}

type podProbe struct {
	HTTP struct {
		Path   string `yaml:"path"`
		Port   string `yaml:"port"`
		Scheme string `yaml:"scheme"`
	} `yaml:"httpGet"`
	Period   int `yaml:"periodSeconds"`
	Timeout  int `yaml:"timeoutSeconds"`
	Failures int `yaml:"failureThreshold"`
}

type mount struct {
	Name     string `yaml:"name"`
	Path     string `yaml:"mountPath"`
	ReadOnly bool   `yaml:"readOnly"`
}

type volume struct {
	Name      string `yaml:"name"`
	ConfigMap *struct {
		Name string `yaml:"name"`
	} `yaml:"configMap"`
	Secret *struct {
		Name string `yaml:"secretName"`
		Mode int    `yaml:"defaultMode"`
	} `yaml:"secret"`
	EmptyDir *struct {
		Limit string `yaml:"sizeLimit"`
	} `yaml:"emptyDir"`
	HostPath *struct {
		Path string `yaml:"path"`
		Type string `yaml:"type"`
	} `yaml:"hostPath"`
}

type claim struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       struct {
		Modes     []string            `yaml:"accessModes"`
		Resources map[string]quantity `yaml:"resources"`
	} `yaml:"spec"`
}

type servicePort struct {
	Name     string `yaml:"name"`
	Port     int    `yaml:"port"`
	Target   string `yaml:"targetPort"`
	Protocol string `yaml:"protocol"`
}

type targetRef struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Name       string `yaml:"name"`
}

type scaleMetric struct {
	Type string `yaml:"type"`
	Pods struct {
		Metric struct {
			Name string `yaml:"name"`
		} `yaml:"metric"`
		Target struct {
			Type    string `yaml:"type"`
			Average string `yaml:"averageValue"`
		} `yaml:"target"`
	} `yaml:"pods"`
}

type trafficRule struct {
	Ports []struct {
		Protocol string `yaml:"protocol"`
		Port     any    `yaml:"port"` // a number or a name
	} `yaml:"ports"`
	From []peer `yaml:"from"`
	To   []peer `yaml:"to"`
}

type peer struct {
	Pods       *selector `yaml:"podSelector"`
	Namespaces *selector `yaml:"namespaceSelector"`
	Block      struct {
		CIDR string `yaml:"cidr"`
	} `yaml:"ipBlock"`
}

type endpoint struct {
	Port     string `yaml:"port"`
	Scheme   string `yaml:"scheme"`
	Interval string `yaml:"interval"`
	TLS      struct {
		CA struct {
			Secret struct {
				Name string `yaml:"name"`
				Key  string `yaml:"key"`
			} `yaml:"secret"`
		} `yaml:"ca"`
		ServerName string `yaml:"serverName"`
	} `yaml:"tlsConfig"`
}
