package main

// A dashboard is rows of panels.
type dashboard struct {
	name, title, about string
	variables          []variable
	rows               []row
}

// A variable lets the viewer choose among the values of a label.
type variable struct{ name, label, metric string }

// A row is a heading with panels side by side.
type row struct {
	title  string
	panels []panel
}

// A panel shows the results of queries.
type panel struct {
	title, about string
	unit         string // as Grafana names it
	queries      []query
	stat         bool    // one number instead of lines over time
	stack        bool    // lines are stacked
	max          float64 // maximum of the axis; 0: automatic
	red          float64 // a stat is red from this value on; 0: never
	low          bool    // a stat is red below red instead
}

// A query is PromQL and the legend of its lines.
type query struct{ expr, legend string }

// The sizes of Grafana's grid.
const (
	gridWidth  = 24
	statHeight = 4
	plotHeight = 8
)

// An object is a JSON object.
type object = map[string]any

// source is the Prometheus that the viewer chose.
func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

// model returns the dashboard in Grafana's JSON model.
func (d *dashboard) model() object {
	return object{
		"uid": "hookfabric-" + d.name, "title": "hookfabric / " + d.title, "description": d.about,
		"tags": []string{"hookfabric"}, "timezone": "browser", "editable": true, "graphTooltip": 1,
		"schemaVersion": 39, "version": 1, "refresh": "30s",
		"time":        object{"from": "now-6h", "to": "now"},
		"templating":  object{"list": d.templating()},
		"annotations": object{"list": []object{}},
		"links": []object{{"type": "dashboards", "tags": []string{"hookfabric"}, "title": "hookfabric", "asDropdown": true,
			"includeVars": false, "keepTime": true}},
		"panels": d.panels(),
	}
}

func (d *dashboard) templating() []object {
	list := []object{{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}}
	for _, v := range d.variables {
		values := "label_values(" + v.metric + ", " + v.name + ")"
		list = append(list, object{
			"name": v.name, "label": v.label, "type": "query", "datasource": source(), "definition": values,
			"query": object{"query": values, "refId": "values"}, "refresh": 2, "sort": 1,
			"multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
		})
	}
	return list
}

// panels places the panels from left to right, row by row.
func (d *dashboard) panels() []object {
	var all []object
	y := 0
	for _, r := range d.rows {
		all = append(all, object{"id": len(all) + 1, "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"h": 1, "w": gridWidth, "x": 0, "y": y}})
		y++
		width, height := gridWidth/len(r.panels), plotHeight
		if r.panels[0].stat {
			height = statHeight
		}
		for i := range r.panels {
			p := r.panels[i].model()
			p["id"] = len(all) + 1
			p["gridPos"] = object{"h": height, "w": width, "x": i * width, "y": y}
			all = append(all, p)
		}
		y += height
	}
	return all
}

func (p *panel) model() object {
	m := object{"title": p.title, "description": p.about, "datasource": source(), "targets": p.targets()}
	defaults := object{"unit": p.unit, "min": 0}
	if p.max > 0 {
		defaults["max"] = p.max
	}
	if p.stat {
		m["type"] = "stat"
		m["options"] = object{"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "textMode": "value_and_name",
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}}
		defaults["thresholds"] = p.thresholds()
		delete(defaults, "min") // an overspent budget is negative
	} else {
		m["type"] = "timeseries"
		m["options"] = object{"tooltip": object{"mode": "multi", "sort": "desc"},
			"legend": object{"displayMode": "table", "placement": "bottom", "calcs": []string{"lastNotNull", "max"}}}
		defaults["custom"] = p.lines()
	}
	m["fieldConfig"] = object{"defaults": defaults, "overrides": []object{}}
	return m
}

func (p *panel) targets() []object {
	var all []object
	for i, q := range p.queries {
		all = append(all, object{"refId": string(rune('A' + i)), "expr": q.expr, "legendFormat": q.legend, "datasource": source(), "range": true})
	}
	return all
}

func (p *panel) lines() object {
	custom := object{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false}
	if p.stack {
		custom["stacking"] = object{"mode": "normal", "group": "A"}
		custom["fillOpacity"] = 40
	}
	return custom
}

func (p *panel) thresholds() object {
	first, then := "green", "red"
	if p.low {
		first, then = then, first
	}
	steps := []object{{"color": first, "value": nil}}
	if p.red != 0 || p.low {
		steps = append(steps, object{"color": then, "value": p.red})
	}
	return object{"mode": "absolute", "steps": steps}
}
