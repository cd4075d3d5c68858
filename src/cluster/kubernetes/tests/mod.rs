//! Tests of the parts that decide without the server: states of pods, affinities, manifests, the table of pods.

mod affinity;
mod manifest;
mod pod_state;
mod pod_template;
mod pods;
