{grafanaDashboards+::{},prometheusAlerts+::{groups+:[]}}
