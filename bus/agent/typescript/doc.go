// Package typescript contains the npm package for agents written in TypeScript or
// JavaScript, and its tests. The source is hookfabric.ts. The tests generate hookfabric.mjs
// and hookfabric.d.mts from it with tsc. Go programs have nothing to import here.
package typescript
