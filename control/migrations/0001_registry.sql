-- One object as a rule file describes it, by the digest of kind, name and content. Versions share
-- what they have in common, so a version costs what it changes and a list of names.
CREATE TABLE object (
    digest BLOB NOT NULL PRIMARY KEY CHECK (length(digest) = 32),
    kind TEXT NOT NULL CHECK (kind IN ('Objective', 'Layer', 'Fact', 'Model', 'Shard')),
    name TEXT NOT NULL,
    content TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What decides: Objectives, Layers, Facts, and who owns which Slots.
CREATE TABLE selection (
    version INTEGER NOT NULL PRIMARY KEY CHECK (version > 0),
    digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE selection_object (
    selection INTEGER NOT NULL REFERENCES selection (version),
    object BLOB NOT NULL REFERENCES object (digest),
    PRIMARY KEY (selection, object)
) STRICT, WITHOUT ROWID;

-- Slots of an Experiment's own salt, by Arm; ranges as JSON, such as ["0-4499"].
CREATE TABLE experiment_slots (
    selection INTEGER NOT NULL REFERENCES selection (version),
    objective TEXT NOT NULL,
    rule TEXT NOT NULL,
    arm TEXT NOT NULL,
    salt TEXT NOT NULL,
    slots TEXT NOT NULL,
    PRIMARY KEY (selection, objective, rule, arm)
) STRICT, WITHOUT ROWID;

-- Slots of a Layer's salt, by Experiment.
CREATE TABLE layer_slots (
    selection INTEGER NOT NULL REFERENCES selection (version),
    layer TEXT NOT NULL,
    experiment TEXT NOT NULL,
    salt TEXT NOT NULL,
    slots TEXT NOT NULL,
    PRIMARY KEY (selection, layer, experiment)
) STRICT, WITHOUT ROWID;

-- What answers, and where: Model versions and Shards.
CREATE TABLE placement (
    version INTEGER NOT NULL PRIMARY KEY CHECK (version > 0),
    digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
    created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE placement_object (
    placement INTEGER NOT NULL REFERENCES placement (version),
    object BLOB NOT NULL REFERENCES object (digest),
    PRIMARY KEY (placement, object)
) STRICT, WITHOUT ROWID;

-- A change and the Snapshot that it leads to. A number is never given twice, whatever came of it.
CREATE TABLE version (
    version INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT CHECK (version > 0),
    action TEXT NOT NULL CHECK (action IN ('apply', 'rollback')),
    restores INTEGER REFERENCES version (version),
    actor TEXT NOT NULL,
    selection INTEGER NOT NULL REFERENCES selection (version),
    placement INTEGER NOT NULL REFERENCES placement (version),
    state TEXT NOT NULL CHECK (
        state IN (
            'Assigned', 'Validating', 'Validated', 'Activating', 'Active', 'Failed', 'RolledBack'
        )
    ),
    reason TEXT,
    digest BLOB CHECK (length(digest) = 32),
    -- The signed file; given up again once it is old.
    snapshot BLOB,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX version_by_state ON version (state, version);

-- What was checked and seen on the way of a version.
CREATE TABLE evidence (
    sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    version INTEGER NOT NULL REFERENCES version (version),
    at_ms INTEGER NOT NULL,
    subject TEXT NOT NULL,
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    detail TEXT NOT NULL
) STRICT;

CREATE INDEX evidence_by_version ON evidence (version);

-- A token names one business goal for ever.
CREATE TABLE objective_token (
    token TEXT NOT NULL PRIMARY KEY,
    -- Set while no active version has it.
    retired_in INTEGER REFERENCES version (version)
) STRICT, WITHOUT ROWID;

-- Append-only: who did what when, and what it made of the content.
CREATE TABLE audit (
    sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    version INTEGER NOT NULL,
    before_digest BLOB,
    after_digest BLOB,
    detail TEXT NOT NULL
) STRICT;

CREATE TRIGGER audit_keeps_what_it_has BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER audit_forgets_nothing BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;
