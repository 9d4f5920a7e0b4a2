BEGIN TRANSACTION;
CREATE TABLE advice (
    run TEXT NOT NULL, candidate TEXT NOT NULL, given REAL NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (run, candidate)
);
CREATE TABLE baselines (
    key TEXT NOT NULL, name TEXT NOT NULL, ratio REAL NOT NULL, timed REAL NOT NULL,
    PRIMARY KEY (key, name)
);
CREATE TABLE candidates (
    run TEXT NOT NULL REFERENCES runs, id TEXT NOT NULL, round INTEGER NOT NULL, policy TEXT NOT NULL,
    title TEXT NOT NULL, techniques TEXT NOT NULL, exemplars TEXT NOT NULL, source TEXT NOT NULL,
    source_hash TEXT NOT NULL, text TEXT NOT NULL, written REAL NOT NULL,
    prompt TEXT NOT NULL DEFAULT '', repairs TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run, id)
);
INSERT INTO "candidates" VALUES('r1','c01',1,'replay','t','["fusion"]','[]','class ModelNew: ...
','h','text',1.0,'','');
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, candidate TEXT NOT NULL, decision TEXT NOT NULL, path TEXT,
    made REAL NOT NULL
);
INSERT INTO "decisions" VALUES(1,'r1','c01','kept','/w/model_optimized.py',2.0);
CREATE TABLE rounds (
    run TEXT NOT NULL REFERENCES runs, round INTEGER NOT NULL, started REAL NOT NULL, exemplars TEXT NOT NULL,
    prompt TEXT NOT NULL, finished REAL, accepted INTEGER, rejected INTEGER,
    PRIMARY KEY (run, round)
);
INSERT INTO "rounds" VALUES('r1',1,1.0,'[]','write',2.0,1,0);
CREATE TABLE runs (
    id TEXT PRIMARY KEY, task INTEGER REFERENCES tasks, reference TEXT NOT NULL, policy TEXT NOT NULL,
    device TEXT NOT NULL, folder TEXT NOT NULL, started REAL NOT NULL, finished REAL, reason TEXT,
    best TEXT, best_speedup REAL
);
INSERT INTO "runs" VALUES('r1',1,'/w/model.py','replay','cpu','/w/.cudal1/runs/r1',1.0,2.0,'done','c01',2.0);
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY, source_hash TEXT NOT NULL, model TEXT NOT NULL, device_name TEXT NOT NULL,
    path TEXT NOT NULL, seen REAL NOT NULL, json TEXT NOT NULL,
    UNIQUE (source_hash, model, device_name)
);
INSERT INTO "tasks" VALUES(1,'8ccaaa7970298fa26b165e32229213c3bae14cd6072dd90c8f92def01f1bc198','Model','a processor','/w/model.py',1.0,'{"path": "/w/model.py", "model": "Model", "source": "class Model: ...\n", "source_hash": "8ccaaa7970298fa26b165e32229213c3bae14cd6072dd90c8f92def01f1bc198", "device": "cpu", "device_name": "a processor", "dtype": "float32", "inputs": ["float32[4]"], "outputs": ["float32[4]"], "parameters": 0, "labels": [], "checks": [], "flags": {}}');
CREATE TABLE verdicts (
    run TEXT NOT NULL, candidate TEXT NOT NULL, verdict TEXT NOT NULL, category TEXT, speedup REAL,
    drop_in INTEGER NOT NULL, seconds REAL NOT NULL, reached REAL NOT NULL, json TEXT NOT NULL,
    PRIMARY KEY (run, candidate)
);
INSERT INTO "verdicts" VALUES('r1','c01','accepted',NULL,2.0,1,1.5,1.5,'{"verdict": "accepted", "category": null, "reason": null, "speedup": 2.0, "speedup_interval": [1.9, 2.1], "reference_ms": 2.0, "candidate_ms": 1.0, "win": null, "baselines": {}, "checks": [{"name": "a", "passed": true, "detail": "b"}], "labels": [], "device": {}, "isolation": [], "versions": {}, "seed": ""}');
CREATE INDEX runs_of_task ON runs (task);
CREATE INDEX candidates_by_source ON candidates (source_hash);
CREATE INDEX exemplars_by_speed ON verdicts (run, speedup) WHERE verdict = 'accepted' AND drop_in;
CREATE INDEX decisions_of_candidate ON decisions (run, candidate, id);
COMMIT;
PRAGMA user_version = 4;
