import * as hookfabric from "../hookfabric.ts";
import { suite } from "./suite.mjs";

suite(hookfabric);
