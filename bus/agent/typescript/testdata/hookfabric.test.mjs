import * as hookfabric from "../hookfabric.mjs";
import { suite } from "./suite.mjs";

suite(hookfabric);
