// What the pages do beside what their links and forms do: they stay up to date, have keys, and show
// times as their visitor likes.
import "./copy.js";
import "./keys.js";
import "./live.js";
import "./preview.js";
import { show } from "./times.js";
import { settings } from "./settings.js";

settings(document);
show(document);
