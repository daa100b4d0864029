// Generated from schemas/*.avsc by `fabric schema generate`. Do not edit.

import type { AvroEnum, AvroRecord } from '../avro-json.ts';
import type { EventType } from '../catalog.ts';

export const envelopeSource: AvroRecord = {
  "type": "record",
  "name": "Envelope",
  "namespace": "fabric",
  "doc": "The shared part of every event. A type's own record is this plus its redacted_summary.",
  "fields": [
    {
      "name": "event_id",
      "type": "string",
      "doc": "evt_ and a UUID (v7; v8 when derived by a processor). Global dedupe key."
    },
    {
      "name": "type",
      "type": "string",
      "doc": "The topic's name."
    },
    {
      "name": "schema_version",
      "type": "string",
      "doc": "major.minor. A consumer refuses a higher major."
    },
    {
      "name": "occurred_at",
      "type": {
        "type": "long",
        "logicalType": "timestamp-millis"
      },
      "doc": "UTC; the client's claim."
    },
    {
      "name": "recorded_at",
      "type": {
        "type": "long",
        "logicalType": "timestamp-millis"
      },
      "doc": "UTC; ours. Windows, SLA and prices use this one."
    },
    {
      "name": "tenant_id",
      "type": "string"
    },
    {
      "name": "environment",
      "type": "string",
      "doc": "Deployment environment of the agent: local, staging, production."
    },
    {
      "name": "runtime",
      "type": {
        "type": "record",
        "name": "Runtime",
        "fields": [
          {
            "name": "kind",
            "type": "string",
            "doc": "Adapter name, or fabric for our own services."
          },
          {
            "name": "adapter_version",
            "type": "string"
          },
          {
            "name": "runtime_version",
            "type": [
              "null",
              "string"
            ],
            "default": null
          },
          {
            "name": "permission_mode",
            "type": [
              "null",
              "string"
            ],
            "default": null
          },
          {
            "name": "sandbox",
            "type": [
              "null",
              "string"
            ],
            "default": null
          }
        ]
      }
    },
    {
      "name": "actor",
      "type": {
        "type": "record",
        "name": "Actor",
        "fields": [
          {
            "name": "user_id",
            "type": [
              "null",
              "string"
            ],
            "default": null
          },
          {
            "name": "agent_id",
            "type": [
              "null",
              "string"
            ],
            "default": null
          }
        ]
      }
    },
    {
      "name": "execution",
      "type": {
        "type": "record",
        "name": "Execution",
        "fields": [
          {
            "name": "task_id",
            "type": [
              "null",
              "string"
            ],
            "default": null
          },
          {
            "name": "session_id",
            "type": [
              "null",
              "string"
            ],
            "default": null
          },
          {
            "name": "turn_id",
            "type": [
              "null",
              "string"
            ],
            "default": null
          },
          {
            "name": "tool_call_id",
            "type": [
              "null",
              "string"
            ],
            "default": null
          },
          {
            "name": "attempt",
            "type": "int",
            "default": 1,
            "doc": "From 1; raised by a retry or redelivery of the same intent."
          }
        ]
      }
    },
    {
      "name": "correlation_id",
      "type": "string",
      "doc": "One user goal, across child agents and consumers."
    },
    {
      "name": "causation_id",
      "type": [
        "null",
        "string"
      ],
      "default": null,
      "doc": "event_id of the direct trigger, nothing else."
    },
    {
      "name": "origin",
      "type": "string",
      "doc": "human, agent, webhook, schedule, or processor:<name>."
    },
    {
      "name": "hop_count",
      "type": "int",
      "default": 0
    },
    {
      "name": "automation_depth",
      "type": "int",
      "default": 0
    },
    {
      "name": "policy",
      "type": [
        "null",
        {
          "type": "record",
          "name": "Policy",
          "fields": [
            {
              "name": "revision",
              "type": "string"
            },
            {
              "name": "risk",
              "type": "Risk",
              "default": "unknown"
            },
            {
              "name": "decision",
              "type": [
                "null",
                "Decision"
              ],
              "default": null
            },
            {
              "name": "reason_code",
              "type": [
                "null",
                "string"
              ],
              "default": null
            },
            {
              "name": "matched_rules",
              "type": {
                "type": "array",
                "items": "string"
              },
              "default": []
            }
          ]
        }
      ],
      "default": null
    },
    {
      "name": "capability_id",
      "type": [
        "null",
        "string"
      ],
      "default": null
    },
    {
      "name": "approval_id",
      "type": [
        "null",
        "string"
      ],
      "default": null
    },
    {
      "name": "plan_digest",
      "type": [
        "null",
        "string"
      ],
      "default": null,
      "doc": "sha256: and hex, over the plan's RFC 8785 form."
    },
    {
      "name": "effect_id",
      "type": [
        "null",
        "string"
      ],
      "default": null
    },
    {
      "name": "receipt_id",
      "type": [
        "null",
        "string"
      ],
      "default": null
    },
    {
      "name": "subject",
      "type": [
        "null",
        {
          "type": "record",
          "name": "Subject",
          "fields": [
            {
              "name": "tool",
              "type": [
                "null",
                "string"
              ],
              "default": null,
              "doc": "Fabric tool name, such as shell.run or file.write."
            },
            {
              "name": "action",
              "type": [
                "null",
                "string"
              ],
              "default": null
            },
            {
              "name": "resource_ref",
              "type": [
                "null",
                "string"
              ],
              "default": null
            },
            {
              "name": "data_class",
              "type": "DataClass",
              "default": "unknown"
            }
          ]
        }
      ],
      "default": null
    },
    {
      "name": "payload_ref",
      "type": [
        "null",
        "string"
      ],
      "default": null,
      "doc": "vault:// reference of the raw payload."
    },
    {
      "name": "payload_digest",
      "type": [
        "null",
        "string"
      ],
      "default": null,
      "doc": "hmac-sha256: and hex, under the tenant's key."
    },
    {
      "name": "trace",
      "type": [
        "null",
        {
          "type": "record",
          "name": "Trace",
          "fields": [
            {
              "name": "traceparent",
              "type": "string",
              "doc": "W3C Trace Context."
            }
          ]
        }
      ],
      "default": null
    }
  ]
};

export const sharedSources: readonly AvroEnum[] = [
  {
    "type": "enum",
    "name": "Decision",
    "namespace": "fabric",
    "symbols": [
      "unknown",
      "allow",
      "deny",
      "require_approval",
      "defer",
      "modify"
    ],
    "default": "unknown"
  },
  {
    "type": "enum",
    "name": "Risk",
    "namespace": "fabric",
    "symbols": [
      "unknown",
      "low",
      "medium",
      "high",
      "critical"
    ],
    "default": "unknown"
  },
  {
    "type": "enum",
    "name": "DataClass",
    "namespace": "fabric",
    "symbols": [
      "unknown",
      "public",
      "internal",
      "confidential",
      "secret"
    ],
    "default": "unknown"
  },
  {
    "type": "enum",
    "name": "EffectClass",
    "namespace": "fabric",
    "symbols": [
      "unknown",
      "none",
      "read",
      "write",
      "execute",
      "network",
      "spawn"
    ],
    "default": "unknown",
    "doc": "What a tool does to the world. unknown counts as the worst."
  },
  {
    "type": "enum",
    "name": "Outcome",
    "namespace": "fabric",
    "symbols": [
      "unknown",
      "succeeded",
      "failed",
      "interrupted",
      "blocked"
    ],
    "default": "unknown"
  },
  {
    "type": "enum",
    "name": "BreakerScope",
    "namespace": "fabric",
    "symbols": [
      "unknown",
      "correlation",
      "agent",
      "tenant",
      "all"
    ],
    "default": "unknown"
  },
  {
    "type": "enum",
    "name": "IncidentScope",
    "namespace": "fabric",
    "symbols": [
      "unknown",
      "all",
      "tenant",
      "correlation",
      "session",
      "agent",
      "user",
      "tool"
    ],
    "default": "unknown"
  },
  {
    "type": "enum",
    "name": "LetterKind",
    "namespace": "fabric",
    "symbols": [
      "unknown",
      "quarantine",
      "dead"
    ],
    "default": "unknown"
  },
  {
    "type": "enum",
    "name": "GapCause",
    "namespace": "fabric",
    "symbols": [
      "unknown",
      "retention",
      "log_end_below_position",
      "topic_missing",
      "jump",
      "topic_recreated"
    ],
    "default": "unknown"
  }
];

export const summarySources: Readonly<Record<EventType, AvroRecord>> = {
  "agent.session.started": {
    "type": "record",
    "name": "AgentSessionStartedSummary",
    "namespace": "fabric",
    "doc": "A session began or continued. Also the heartbeat that the hooks are loaded.",
    "fields": [
      {
        "name": "source",
        "type": {
          "type": "enum",
          "name": "SessionSource",
          "symbols": [
            "unknown",
            "startup",
            "resume",
            "clear",
            "compact",
            "fork"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "model",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "working_directory",
        "type": [
          "null",
          "string"
        ],
        "default": null
      }
    ]
  },
  "agent.session.ended": {
    "type": "record",
    "name": "AgentSessionEndedSummary",
    "namespace": "fabric",
    "doc": "A session ended.",
    "fields": [
      {
        "name": "reason",
        "type": [
          "null",
          "string"
        ],
        "default": null
      }
    ]
  },
  "agent.session.compacted": {
    "type": "record",
    "name": "AgentSessionCompactedSummary",
    "namespace": "fabric",
    "doc": "The session's context was compacted.",
    "fields": [
      {
        "name": "trigger",
        "type": {
          "type": "enum",
          "name": "CompactionTrigger",
          "symbols": [
            "unknown",
            "manual",
            "automatic"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "summary_bytes",
        "type": [
          "null",
          "int"
        ],
        "default": null,
        "doc": "Size of the summary that replaced the context, in bytes of UTF-8."
      }
    ]
  },
  "agent.turn.started": {
    "type": "record",
    "name": "AgentTurnStartedSummary",
    "namespace": "fabric",
    "doc": "A turn began.",
    "fields": [
      {
        "name": "trigger",
        "type": {
          "type": "enum",
          "name": "TurnTrigger",
          "symbols": [
            "unknown",
            "prompt",
            "resume",
            "subagent"
          ],
          "default": "unknown"
        }
      }
    ]
  },
  "agent.turn.completed": {
    "type": "record",
    "name": "AgentTurnCompletedSummary",
    "namespace": "fabric",
    "doc": "A turn came to an end, well or not.",
    "fields": [
      {
        "name": "outcome",
        "type": "Outcome"
      },
      {
        "name": "error_kind",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "final_message_bytes",
        "type": [
          "null",
          "int"
        ],
        "default": null,
        "doc": "Size of the last message, in bytes of UTF-8."
      },
      {
        "name": "continued_by_hook",
        "type": "boolean",
        "default": false,
        "doc": "True when a hook made the agent go on after an earlier stop."
      },
      {
        "name": "background_tasks",
        "type": "int",
        "default": 0,
        "doc": "Tasks still running when the turn ended."
      }
    ]
  },
  "agent.prompt.submitted": {
    "type": "record",
    "name": "AgentPromptSubmittedSummary",
    "namespace": "fabric",
    "doc": "A prompt was handed to the agent.",
    "fields": [
      {
        "name": "prompt_bytes",
        "type": "int",
        "doc": "Bytes of UTF-8."
      },
      {
        "name": "preview",
        "type": "string",
        "doc": "Masked, at most 256 characters."
      },
      {
        "name": "command_name",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Set when the prompt was expanded from a named command."
      }
    ]
  },
  "agent.subagent.started": {
    "type": "record",
    "name": "AgentSubagentStartedSummary",
    "namespace": "fabric",
    "doc": "A child agent began.",
    "fields": [
      {
        "name": "subagent_id",
        "type": "string"
      },
      {
        "name": "subagent_kind",
        "type": [
          "null",
          "string"
        ],
        "default": null
      }
    ]
  },
  "agent.subagent.stopped": {
    "type": "record",
    "name": "AgentSubagentStoppedSummary",
    "namespace": "fabric",
    "doc": "A child agent ended.",
    "fields": [
      {
        "name": "subagent_id",
        "type": "string"
      },
      {
        "name": "subagent_kind",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "outcome",
        "type": "Outcome"
      },
      {
        "name": "final_message_bytes",
        "type": [
          "null",
          "int"
        ],
        "default": null,
        "doc": "Bytes of UTF-8."
      }
    ]
  },
  "agent.model.completed": {
    "type": "record",
    "name": "AgentModelCompletedSummary",
    "namespace": "fabric",
    "doc": "A model call ended. input_tokens counts all input once, cached and cache-written tokens included.",
    "fields": [
      {
        "name": "model",
        "type": "string"
      },
      {
        "name": "outcome",
        "type": "Outcome"
      },
      {
        "name": "input_tokens",
        "type": [
          "null",
          "long"
        ],
        "default": null
      },
      {
        "name": "cached_input_tokens",
        "type": [
          "null",
          "long"
        ],
        "default": null,
        "doc": "Part of input_tokens."
      },
      {
        "name": "cache_write_tokens",
        "type": [
          "null",
          "long"
        ],
        "default": null,
        "doc": "Part of input_tokens."
      },
      {
        "name": "output_tokens",
        "type": [
          "null",
          "long"
        ],
        "default": null
      },
      {
        "name": "reasoning_tokens",
        "type": [
          "null",
          "long"
        ],
        "default": null,
        "doc": "Part of output_tokens."
      },
      {
        "name": "duration_ms",
        "type": [
          "null",
          "long"
        ],
        "default": null
      },
      {
        "name": "cost_micros",
        "type": [
          "null",
          "long"
        ],
        "default": null,
        "doc": "Millionths of the price list's currency."
      },
      {
        "name": "error_kind",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "model_call_id",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "The runtime's own id of the model call, once per session: two events with the same one tell of one call. Null where it has none."
      }
    ]
  },
  "agent.lifecycle.observed": {
    "type": "record",
    "name": "AgentLifecycleObservedSummary",
    "namespace": "fabric",
    "doc": "A signal of the runtime that changes nothing for policy, kept for the record.",
    "fields": [
      {
        "name": "signal",
        "type": {
          "type": "enum",
          "name": "LifecycleSignal",
          "symbols": [
            "unknown",
            "notice_shown",
            "message_shown",
            "workspace_moved",
            "directory_added",
            "file_changed",
            "worktree_created",
            "worktree_removed",
            "configuration_changed",
            "instructions_loaded",
            "model_switch_requested",
            "model_switched",
            "compaction_requested",
            "tool_batch_completed",
            "todo_created",
            "todo_completed",
            "input_requested",
            "input_answered",
            "setup_ran",
            "model_requested",
            "hooks_loaded",
            "hooks_unloaded"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "detail",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 256 characters."
      },
      {
        "name": "path",
        "type": [
          "null",
          "string"
        ],
        "default": null
      }
    ]
  },
  "agent.tool.requested": {
    "type": "record",
    "name": "AgentToolRequestedSummary",
    "namespace": "fabric",
    "doc": "Intent: an agent asked to use a tool. Not a permission.",
    "fields": [
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "input_bytes",
        "type": "int",
        "doc": "Bytes of the tool input as JSON."
      },
      {
        "name": "input_preview",
        "type": "string",
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "paths",
        "type": {
          "type": "array",
          "items": "string"
        },
        "default": [],
        "doc": "Files that the input names, resolved against the working directory."
      },
      {
        "name": "working_directory",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "tool_alias",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "The runtime's own name of the tool."
      }
    ]
  },
  "agent.tool.authorized": {
    "type": "record",
    "name": "AgentToolAuthorizedSummary",
    "namespace": "fabric",
    "doc": "The gate allowed a tool call.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string"
      },
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "modified",
        "type": "boolean",
        "default": false,
        "doc": "True when the input was rewritten."
      }
    ]
  },
  "agent.tool.denied": {
    "type": "record",
    "name": "AgentToolDeniedSummary",
    "namespace": "fabric",
    "doc": "The gate refused a tool call.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string"
      },
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "message",
        "type": "string",
        "doc": "What the agent was told."
      }
    ]
  },
  "agent.tool.deferred": {
    "type": "record",
    "name": "AgentToolDeferredSummary",
    "namespace": "fabric",
    "doc": "The gate put a tool call off: what a rule needs to know is missing or too old. Nothing resumes by itself.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string"
      },
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "message",
        "type": "string",
        "doc": "What the agent was told."
      },
      {
        "name": "waits_for",
        "type": {
          "type": "array",
          "items": "string"
        },
        "doc": "Names of the facts that are missing."
      },
      {
        "name": "deadline_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        },
        "doc": "From here on the same call is denied."
      }
    ]
  },
  "agent.deferral.answered": {
    "type": "record",
    "name": "AgentDeferralAnsweredSummary",
    "namespace": "fabric",
    "doc": "A plan that had been put off was asked for again and decided: the facts it waited for were there.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string"
      },
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "decision",
        "type": "Decision"
      },
      {
        "name": "deferred_since_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        },
        "doc": "When the plan was put off first."
      }
    ]
  },
  "agent.tool.completed": {
    "type": "record",
    "name": "AgentToolCompletedSummary",
    "namespace": "fabric",
    "doc": "Fact: a tool call ended.",
    "fields": [
      {
        "name": "outcome",
        "type": "Outcome"
      },
      {
        "name": "duration_ms",
        "type": [
          "null",
          "long"
        ],
        "default": null
      },
      {
        "name": "output_bytes",
        "type": [
          "null",
          "int"
        ],
        "default": null,
        "doc": "Bytes of the result as JSON or text."
      },
      {
        "name": "output_preview",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "error_preview",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "tool_alias",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "The runtime's own name of the tool."
      }
    ]
  },
  "agent.permission.requested": {
    "type": "record",
    "name": "AgentPermissionRequestedSummary",
    "namespace": "fabric",
    "doc": "Intent: the runtime asks whether a tool call may go on.",
    "fields": [
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "input_preview",
        "type": "string",
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "tool_alias",
        "type": [
          "null",
          "string"
        ],
        "default": null
      }
    ]
  },
  "agent.permission.refused": {
    "type": "record",
    "name": "AgentPermissionRefusedSummary",
    "namespace": "fabric",
    "doc": "The runtime itself refused a tool call.",
    "fields": [
      {
        "name": "refused_by",
        "type": {
          "type": "enum",
          "name": "Refuser",
          "symbols": [
            "unknown",
            "runtime",
            "user",
            "gate"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "reason",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "tool_alias",
        "type": [
          "null",
          "string"
        ],
        "default": null
      }
    ]
  },
  "agent.effect.prepared": {
    "type": "record",
    "name": "AgentEffectPreparedSummary",
    "namespace": "fabric",
    "doc": "A plan was frozen for a person to look at: what is approved is exactly this.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string"
      },
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "plan_preview",
        "type": "string",
        "doc": "The frozen plan, masked, at most 2,048 characters; the digest binds the whole of it."
      },
      {
        "name": "expires_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      }
    ]
  },
  "agent.approval.requested": {
    "type": "record",
    "name": "AgentApprovalRequestedSummary",
    "namespace": "fabric",
    "doc": "A person has to agree to a frozen plan. Expired means denied.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string"
      },
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "risk_score",
        "type": "int",
        "doc": "0 to 100."
      },
      {
        "name": "expires_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      },
      {
        "name": "message",
        "type": "string",
        "doc": "What the agent was told."
      }
    ]
  },
  "agent.approval.granted": {
    "type": "record",
    "name": "AgentApprovalGrantedSummary",
    "namespace": "fabric",
    "doc": "A person agreed to one plan, for one use. The actor is the approver.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string",
        "doc": "The decision that asked for it."
      },
      {
        "name": "requester_id",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "The user on whose behalf it was asked for; never the approver."
      },
      {
        "name": "note",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "decided_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      }
    ]
  },
  "agent.approval.refused": {
    "type": "record",
    "name": "AgentApprovalRefusedSummary",
    "namespace": "fabric",
    "doc": "A person refused a plan. The actor is the approver.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string",
        "doc": "The decision that asked for it."
      },
      {
        "name": "requester_id",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "The user on whose behalf it was asked for."
      },
      {
        "name": "note",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "decided_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      }
    ]
  },
  "agent.approval.expired": {
    "type": "record",
    "name": "AgentApprovalExpiredSummary",
    "namespace": "fabric",
    "doc": "Nobody answered in time, or nobody used the answer in time.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string",
        "doc": "The decision that asked for it."
      },
      {
        "name": "expired_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      }
    ]
  },
  "agent.approval.voided": {
    "type": "record",
    "name": "AgentApprovalVoidedSummary",
    "namespace": "fabric",
    "doc": "An approval does not count any more, because the plan is not the one that was agreed to, or was revoked.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string",
        "doc": "The decision that asked for it."
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked, at most 512 characters."
      }
    ]
  },
  "agent.approval.consumed": {
    "type": "record",
    "name": "AgentApprovalConsumedSummary",
    "namespace": "fabric",
    "doc": "A call passed by using up an approval.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string",
        "doc": "The decision that used it."
      }
    ]
  },
  "agent.capability.issued": {
    "type": "record",
    "name": "AgentCapabilityIssuedSummary",
    "namespace": "fabric",
    "doc": "A right to carry out one plan was issued.",
    "fields": [
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "expires_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      },
      {
        "name": "max_calls",
        "type": "int"
      }
    ]
  },
  "agent.capability.spent": {
    "type": "record",
    "name": "AgentCapabilitySpentSummary",
    "namespace": "fabric",
    "doc": "Calls of a right were used. The actor is the resource that spent them; nobody can spend them again.",
    "fields": [
      {
        "name": "usage_id",
        "type": "string"
      },
      {
        "name": "calls",
        "type": "int",
        "doc": "Used by this spend."
      },
      {
        "name": "calls_used",
        "type": "int",
        "doc": "Used up to and with this spend."
      },
      {
        "name": "max_calls",
        "type": "int"
      }
    ]
  },
  "agent.capability.revoked": {
    "type": "record",
    "name": "AgentCapabilityRevokedSummary",
    "namespace": "fabric",
    "doc": "A right was taken back before its time. The actor is who did it.",
    "fields": [
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "scope",
        "type": {
          "type": "enum",
          "name": "RevocationScope",
          "symbols": [
            "unknown",
            "capability",
            "plan",
            "session",
            "subject"
          ],
          "default": "unknown",
          "doc": "What was named; a plan, session or subject takes all its rights with it."
        }
      },
      {
        "name": "calls_used",
        "type": "int"
      },
      {
        "name": "max_calls",
        "type": "int"
      }
    ]
  },
  "agent.capability.expired": {
    "type": "record",
    "name": "AgentCapabilityExpiredSummary",
    "namespace": "fabric",
    "doc": "A right came to its end with calls left.",
    "fields": [
      {
        "name": "expired_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      },
      {
        "name": "calls_used",
        "type": "int"
      },
      {
        "name": "max_calls",
        "type": "int"
      }
    ]
  },
  "agent.plan.revoked": {
    "type": "record",
    "name": "AgentPlanRevokedSummary",
    "namespace": "fabric",
    "doc": "A plan may not be carried out, whoever asks, until the time given. The actor is who said so.",
    "fields": [
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "capabilities",
        "type": "int",
        "doc": "How many rights ended with it."
      },
      {
        "name": "expires_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      }
    ]
  },
  "agent.effect.attempted": {
    "type": "record",
    "name": "AgentEffectAttemptedSummary",
    "namespace": "fabric",
    "doc": "An effect was sent to the resource. What came of it is told by a receipt, or by nothing.",
    "fields": [
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "connector",
        "type": "string",
        "doc": "What carries it out, such as http."
      },
      {
        "name": "idempotency_key_digest",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "sha256: and hex over the key that the resource is given."
      }
    ]
  },
  "agent.effect.receipted": {
    "type": "record",
    "name": "AgentEffectReceiptedSummary",
    "namespace": "fabric",
    "doc": "The resource answered.",
    "fields": [
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "outcome",
        "type": "Outcome"
      },
      {
        "name": "duration_ms",
        "type": [
          "null",
          "long"
        ],
        "default": null,
        "doc": "From sending to the answer."
      },
      {
        "name": "status",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "The resource's own word for it, such as an HTTP status."
      }
    ]
  },
  "agent.effect.unresolved": {
    "type": "record",
    "name": "AgentEffectUnresolvedSummary",
    "namespace": "fabric",
    "doc": "Whether the effect happened is not known: the answer is lost. Never sent again blindly.",
    "fields": [
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "cause",
        "type": {
          "type": "enum",
          "name": "UnresolvedCause",
          "symbols": [
            "unknown",
            "timeout",
            "connection_lost",
            "crash"
          ],
          "default": "unknown"
        }
      }
    ]
  },
  "agent.effect.reconciled": {
    "type": "record",
    "name": "AgentEffectReconciledSummary",
    "namespace": "fabric",
    "doc": "The resource was asked by its idempotency key what became of an effect.",
    "fields": [
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "outcome",
        "type": "Outcome"
      },
      {
        "name": "reconciled_by",
        "type": "string",
        "doc": "reconciler, or the person who settled it."
      }
    ]
  },
  "agent.effect.ungated": {
    "type": "record",
    "name": "AgentEffectUngatedSummary",
    "namespace": "fabric",
    "doc": "A tool ran without a decision of the gate before it.",
    "fields": [
      {
        "name": "effect_class",
        "type": "EffectClass"
      },
      {
        "name": "evidence",
        "type": {
          "type": "enum",
          "name": "UngatedEvidence",
          "symbols": [
            "unknown",
            "result_without_decision",
            "session_without_gate",
            "unfinished_item",
            "rerun_outside_sandbox"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "detail",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 512 characters."
      }
    ]
  },
  "agent.plan.diverged": {
    "type": "record",
    "name": "AgentPlanDivergedSummary",
    "namespace": "fabric",
    "doc": "What ran is not the plan that was agreed to.",
    "fields": [
      {
        "name": "decision_id",
        "type": "string"
      },
      {
        "name": "expected_digest",
        "type": "string"
      },
      {
        "name": "actual_digest",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "detail",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 512 characters."
      }
    ]
  },
  "agent.episode.labelled": {
    "type": "record",
    "name": "AgentEpisodeLabelledSummary",
    "namespace": "fabric",
    "doc": "A person judged an episode. The last one by an author counts; the actor is the author.",
    "fields": [
      {
        "name": "episode_id",
        "type": "string"
      },
      {
        "name": "label",
        "type": "string",
        "doc": "Lower case word, such as good, bad, unsafe."
      },
      {
        "name": "score",
        "type": [
          "null",
          "int"
        ],
        "default": null,
        "doc": "0-100."
      },
      {
        "name": "note",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 2,000 characters."
      },
      {
        "name": "author",
        "type": "string"
      },
      {
        "name": "labelled_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      }
    ]
  },
  "fabric.adapter.unrecognized": {
    "type": "record",
    "name": "FabricAdapterUnrecognizedSummary",
    "namespace": "fabric",
    "doc": "A payload that an adapter could not understand. The bytes are in the vault; of a body past the limit, its size alone.",
    "fields": [
      {
        "name": "problem",
        "type": {
          "type": "enum",
          "name": "UnrecognizedProblem",
          "symbols": [
            "unknown",
            "not_json",
            "not_an_object",
            "unknown_event",
            "unknown_value",
            "wrong_type",
            "missing_field",
            "too_large"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "field",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "JSON pointer of the field."
      },
      {
        "name": "event_name",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "body_bytes",
        "type": "int"
      },
      {
        "name": "gating",
        "type": "boolean",
        "doc": "True when the caller was told no because of it."
      }
    ]
  },
  "fabric.policy.activated": {
    "type": "record",
    "name": "FabricPolicyActivatedSummary",
    "namespace": "fabric",
    "doc": "From here on the gate decides by this revision. The actor is who activated it.",
    "fields": [
      {
        "name": "bundle",
        "type": "string",
        "doc": "Its name."
      },
      {
        "name": "revision",
        "type": "string"
      },
      {
        "name": "digest",
        "type": "string",
        "doc": "SHA-256 over the files of the bundle, hex."
      },
      {
        "name": "previous_revision",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Null: there was none."
      },
      {
        "name": "activated_by",
        "type": "string"
      }
    ]
  },
  "fabric.letter.buried": {
    "type": "record",
    "name": "FabricLetterBuriedSummary",
    "namespace": "fabric",
    "doc": "An input was set aside: quarantine could not be understood, dead could not be processed.",
    "fields": [
      {
        "name": "letter_id",
        "type": "string"
      },
      {
        "name": "kind",
        "type": "LetterKind"
      },
      {
        "name": "fault_kind",
        "type": {
          "type": "enum",
          "name": "FaultKind",
          "symbols": [
            "unknown",
            "transient",
            "poison",
            "refused",
            "unknown_effect",
            "fatal"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "code",
        "type": "string"
      },
      {
        "name": "detail",
        "type": "string",
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "consumer_version",
        "type": "string"
      },
      {
        "name": "attempts",
        "type": "int"
      },
      {
        "name": "source_topic",
        "type": "string"
      },
      {
        "name": "source_partition",
        "type": [
          "null",
          "int"
        ],
        "default": null
      },
      {
        "name": "source_offset",
        "type": [
          "null",
          "long"
        ],
        "default": null
      },
      {
        "name": "source_event_id",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "accountable",
        "type": "string",
        "doc": "Who has to look at it."
      }
    ]
  },
  "fabric.gap.found": {
    "type": "record",
    "name": "FabricGapFoundSummary",
    "namespace": "fabric",
    "doc": "A consumer stopped a partition because records that it never saw are gone.",
    "fields": [
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "source_topic",
        "type": "string"
      },
      {
        "name": "source_partition",
        "type": "int"
      },
      {
        "name": "expected_offset",
        "type": "long"
      },
      {
        "name": "found_offset",
        "type": "long"
      },
      {
        "name": "cause",
        "type": "GapCause"
      }
    ]
  },
  "fabric.letter.redriven": {
    "type": "record",
    "name": "FabricLetterRedrivenSummary",
    "namespace": "fabric",
    "doc": "A letter's input went through the consumer that had set it aside, and only through that one.",
    "fields": [
      {
        "name": "letter_id",
        "type": "string"
      },
      {
        "name": "redrive_id",
        "type": "string"
      },
      {
        "name": "outcome",
        "type": {
          "type": "enum",
          "name": "RedriveOutcome",
          "symbols": [
            "unknown",
            "processed",
            "duplicate"
          ],
          "default": "unknown"
        },
        "doc": "duplicate: the event had been processed meanwhile."
      },
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "consumer_version",
        "type": "string",
        "doc": "The version that processed it, not the one that had failed."
      },
      {
        "name": "attempts",
        "type": "int",
        "doc": "All tries, this one included."
      },
      {
        "name": "source_topic",
        "type": "string"
      },
      {
        "name": "source_partition",
        "type": "int"
      },
      {
        "name": "source_offset",
        "type": "long"
      },
      {
        "name": "source_event_id",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "redriven_by",
        "type": "string"
      }
    ]
  },
  "fabric.letter.archived": {
    "type": "record",
    "name": "FabricLetterArchivedSummary",
    "namespace": "fabric",
    "doc": "A person put a letter away for good: its input will not be processed.",
    "fields": [
      {
        "name": "letter_id",
        "type": "string"
      },
      {
        "name": "kind",
        "type": "LetterKind"
      },
      {
        "name": "code",
        "type": "string"
      },
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "attempts",
        "type": "int"
      },
      {
        "name": "source_topic",
        "type": "string"
      },
      {
        "name": "source_partition",
        "type": "int"
      },
      {
        "name": "source_offset",
        "type": "long"
      },
      {
        "name": "source_event_id",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "archived_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked."
      }
    ]
  },
  "fabric.redrive.requested": {
    "type": "record",
    "name": "FabricRedriveRequestedSummary",
    "namespace": "fabric",
    "doc": "A person sends letters of one consumer through it again.",
    "fields": [
      {
        "name": "redrive_id",
        "type": "string"
      },
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "letters",
        "type": "int",
        "doc": "How many wait for it."
      },
      {
        "name": "selection",
        "type": "string",
        "doc": "The filter as it was given, in words."
      },
      {
        "name": "per_second",
        "type": "int",
        "doc": "At most so many letters a second."
      },
      {
        "name": "is_beyond_limit",
        "type": "boolean",
        "doc": "Letters that had been redriven as often as a letter may were asked for by name."
      },
      {
        "name": "requested_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked."
      }
    ]
  },
  "fabric.redrive.stopped": {
    "type": "record",
    "name": "FabricRedriveStoppedSummary",
    "namespace": "fabric",
    "doc": "A person stopped a redrive under way.",
    "fields": [
      {
        "name": "redrive_id",
        "type": "string"
      },
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "letters_left",
        "type": "int",
        "doc": "How many had not gone through yet."
      },
      {
        "name": "is_given_up",
        "type": "boolean",
        "doc": "It does not go on any more: its letters wait for nothing again."
      },
      {
        "name": "stopped_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked."
      }
    ]
  },
  "fabric.redrive.resumed": {
    "type": "record",
    "name": "FabricRedriveResumedSummary",
    "namespace": "fabric",
    "doc": "A person let a redrive that was stopped go on.",
    "fields": [
      {
        "name": "redrive_id",
        "type": "string"
      },
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "letters_left",
        "type": "int",
        "doc": "How many have not gone through yet."
      },
      {
        "name": "resumed_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked."
      }
    ]
  },
  "fabric.gap.resumed": {
    "type": "record",
    "name": "FabricGapResumedSummary",
    "namespace": "fabric",
    "doc": "A person chose how a consumer goes on in a partition that a gap had stopped. What was lost stays lost.",
    "fields": [
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "source_topic",
        "type": "string"
      },
      {
        "name": "source_partition",
        "type": "int"
      },
      {
        "name": "cause",
        "type": "GapCause",
        "doc": "Why it was stopped."
      },
      {
        "name": "choice",
        "type": {
          "type": "enum",
          "name": "ResumeChoice",
          "symbols": [
            "unknown",
            "log_start",
            "offset",
            "log_end"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "stopped_offset",
        "type": "long",
        "doc": "Where the consumer stood."
      },
      {
        "name": "resumed_offset",
        "type": "long",
        "doc": "Where it goes on."
      },
      {
        "name": "resumed_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked."
      }
    ]
  },
  "fabric.emission.released": {
    "type": "record",
    "name": "FabricEmissionReleasedSummary",
    "namespace": "fabric",
    "doc": "A person let events go out that a consumer's fan-out guard had held back.",
    "fields": [
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "events",
        "type": "int"
      },
      {
        "name": "held_since_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      },
      {
        "name": "held_for",
        "type": "string",
        "doc": "Why they were held back."
      },
      {
        "name": "released_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked."
      }
    ]
  },
  "fabric.emission.dropped": {
    "type": "record",
    "name": "FabricEmissionDroppedSummary",
    "namespace": "fabric",
    "doc": "A person threw events away that a consumer's fan-out guard had held back.",
    "fields": [
      {
        "name": "consumer",
        "type": "string"
      },
      {
        "name": "events",
        "type": "int"
      },
      {
        "name": "held_since_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      },
      {
        "name": "held_for",
        "type": "string",
        "doc": "Why they were held back."
      },
      {
        "name": "dropped_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked."
      }
    ]
  },
  "fabric.publication.retried": {
    "type": "record",
    "name": "FabricPublicationRetriedSummary",
    "namespace": "fabric",
    "doc": "A person put an event back into the outbox that the broker had refused.",
    "fields": [
      {
        "name": "refused_event_id",
        "type": "string"
      },
      {
        "name": "refused_type",
        "type": "string"
      },
      {
        "name": "code",
        "type": "string",
        "doc": "Why it was refused."
      },
      {
        "name": "retried_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked."
      }
    ]
  },
  "fabric.publication.archived": {
    "type": "record",
    "name": "FabricPublicationArchivedSummary",
    "namespace": "fabric",
    "doc": "A person put an event away that the broker had refused: it will not be published.",
    "fields": [
      {
        "name": "refused_event_id",
        "type": "string"
      },
      {
        "name": "refused_type",
        "type": "string"
      },
      {
        "name": "code",
        "type": "string",
        "doc": "Why it was refused."
      },
      {
        "name": "archived_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked."
      }
    ]
  },
  "fabric.cost.corrected": {
    "type": "record",
    "name": "FabricCostCorrectedSummary",
    "namespace": "fabric",
    "doc": "A person corrects the ledger by a new entry; no entry is ever changed.",
    "fields": [
      {
        "name": "correction_id",
        "type": "string",
        "doc": "Names the correction: the same one again changes nothing."
      },
      {
        "name": "corrects_event_id",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Event whose entries it corrects."
      },
      {
        "name": "account",
        "type": "string"
      },
      {
        "name": "amount_micros",
        "type": "long",
        "doc": "Millionths of the price list's currency; negative takes away."
      },
      {
        "name": "cause",
        "type": "string"
      },
      {
        "name": "author",
        "type": "string"
      }
    ]
  },
  "fabric.cost.closed": {
    "type": "record",
    "name": "FabricCostClosedSummary",
    "namespace": "fabric",
    "doc": "A person closed a month of the ledger: what it stated then stands for good. Amounts are millionths of the price list's currency.",
    "fields": [
      {
        "name": "period",
        "type": "string",
        "doc": "A UTC month such as 2026-11."
      },
      {
        "name": "amount_micros",
        "type": "long",
        "doc": "What was booked in the month, corrections included."
      },
      {
        "name": "carried_micros",
        "type": "long",
        "doc": "What had come late for months that were closed before, and no later one had stated yet."
      },
      {
        "name": "calls",
        "type": "long",
        "doc": "Calls that ran in the month."
      },
      {
        "name": "unpriced_calls",
        "type": "long",
        "doc": "Calls that are booked with 0, for want of a price or of tokens."
      },
      {
        "name": "closed_by",
        "type": "string"
      },
      {
        "name": "note",
        "type": [
          "null",
          "string"
        ],
        "default": null
      }
    ]
  },
  "fabric.cost.anomalous": {
    "type": "record",
    "name": "FabricCostAnomalousSummary",
    "namespace": "fabric",
    "doc": "A scope spent much more than its own history says.",
    "fields": [
      {
        "name": "scope",
        "type": {
          "type": "enum",
          "name": "CostScope",
          "symbols": [
            "unknown",
            "tenant",
            "agent",
            "user",
            "model",
            "tool",
            "correlation"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "scope_id",
        "type": "string"
      },
      {
        "name": "window_started_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      },
      {
        "name": "window_ms",
        "type": "long"
      },
      {
        "name": "observed_micros",
        "type": "long"
      },
      {
        "name": "expected_micros",
        "type": "long"
      }
    ]
  },
  "fabric.budget.crossed": {
    "type": "record",
    "name": "FabricBudgetCrossedSummary",
    "namespace": "fabric",
    "doc": "Spending passed a limit.",
    "fields": [
      {
        "name": "budget_id",
        "type": "string"
      },
      {
        "name": "scope",
        "type": {
          "type": "enum",
          "name": "BudgetScope",
          "symbols": [
            "unknown",
            "tenant",
            "agent",
            "user",
            "model",
            "tool",
            "correlation"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "scope_id",
        "type": "string"
      },
      {
        "name": "limit_kind",
        "type": {
          "type": "enum",
          "name": "LimitKind",
          "symbols": [
            "unknown",
            "soft",
            "hard"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "limit_micros",
        "type": "long"
      },
      {
        "name": "spent_micros",
        "type": "long"
      },
      {
        "name": "period",
        "type": "string",
        "doc": "Such as 2026-11."
      }
    ]
  },
  "fabric.tenant.erased": {
    "type": "record",
    "name": "FabricTenantErasedSummary",
    "namespace": "fabric",
    "doc": "A tenant's episodes are to be blank: what people and tools wrote in them goes, numbers, decisions and labels stay. Other projections and raw payloads are not touched by it.",
    "fields": [
      {
        "name": "erased_until_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        },
        "doc": "Content that was recorded up to here, whenever a consumer reads it."
      },
      {
        "name": "erased_by",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string"
      }
    ]
  },
  "fabric.takeover.opened": {
    "type": "record",
    "name": "FabricTakeoverOpenedSummary",
    "namespace": "fabric",
    "doc": "Work waits for a person.",
    "fields": [
      {
        "name": "item_id",
        "type": "string"
      },
      {
        "name": "cause",
        "type": {
          "type": "enum",
          "name": "TakeoverCause",
          "symbols": [
            "unknown",
            "deferred",
            "gate_timeout",
            "effect_unresolved",
            "letter",
            "effect_ungated",
            "approval_expired",
            "breaker",
            "plan_diverged",
            "adapter_unrecognized",
            "gap",
            "budget"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "cause_key",
        "type": "string",
        "doc": "Items of one key are one item."
      },
      {
        "name": "title",
        "type": "string",
        "doc": "Masked, at most 256 characters."
      },
      {
        "name": "due_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      }
    ]
  },
  "fabric.takeover.claimed": {
    "type": "record",
    "name": "FabricTakeoverClaimedSummary",
    "namespace": "fabric",
    "doc": "A person works on an item until the lease ends.",
    "fields": [
      {
        "name": "item_id",
        "type": "string"
      },
      {
        "name": "claimed_by",
        "type": "string"
      },
      {
        "name": "lease_ends_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      }
    ]
  },
  "fabric.takeover.noted": {
    "type": "record",
    "name": "FabricTakeoverNotedSummary",
    "namespace": "fabric",
    "doc": "A person wrote down something about an item.",
    "fields": [
      {
        "name": "item_id",
        "type": "string"
      },
      {
        "name": "author",
        "type": "string"
      },
      {
        "name": "note",
        "type": "string",
        "doc": "Masked, at most 2,000 characters."
      }
    ]
  },
  "fabric.takeover.reassigned": {
    "type": "record",
    "name": "FabricTakeoverReassignedSummary",
    "namespace": "fabric",
    "doc": "An item goes to another person.",
    "fields": [
      {
        "name": "item_id",
        "type": "string"
      },
      {
        "name": "from_person",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "to_person",
        "type": "string"
      },
      {
        "name": "reassigned_by",
        "type": "string"
      }
    ]
  },
  "fabric.takeover.resolved": {
    "type": "record",
    "name": "FabricTakeoverResolvedSummary",
    "namespace": "fabric",
    "doc": "A person closed an item. A proposal is a proposal: nothing acts on it by itself.",
    "fields": [
      {
        "name": "item_id",
        "type": "string"
      },
      {
        "name": "resolved_by",
        "type": "string"
      },
      {
        "name": "outcome",
        "type": {
          "type": "enum",
          "name": "TakeoverOutcome",
          "symbols": [
            "unknown",
            "no_action",
            "approval_proposed",
            "redrive_proposed",
            "incident_proposed",
            "fixed_elsewhere"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "note",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "Masked, at most 2,000 characters."
      },
      {
        "name": "proposal",
        "type": [
          "null",
          "string"
        ],
        "default": null,
        "doc": "What is proposed, for a person to carry out."
      }
    ]
  },
  "fabric.takeover.breached": {
    "type": "record",
    "name": "FabricTakeoverBreachedSummary",
    "namespace": "fabric",
    "doc": "An item is older than its kind may be.",
    "fields": [
      {
        "name": "item_id",
        "type": "string"
      },
      {
        "name": "due_at",
        "type": {
          "type": "long",
          "logicalType": "timestamp-millis"
        }
      }
    ]
  },
  "fabric.breaker.tripped": {
    "type": "record",
    "name": "FabricBreakerTrippedSummary",
    "namespace": "fabric",
    "doc": "A scope is read-only from here on.",
    "fields": [
      {
        "name": "scope",
        "type": "BreakerScope"
      },
      {
        "name": "scope_id",
        "type": "string"
      },
      {
        "name": "measure",
        "type": {
          "type": "enum",
          "name": "BreakerMeasure",
          "symbols": [
            "unknown",
            "fan_out",
            "cost_rate",
            "failure_rate",
            "denial_rate",
            "lag"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "observed",
        "type": "long",
        "doc": "In the measure's unit: a count, micros a minute, per mille, or milliseconds."
      },
      {
        "name": "threshold",
        "type": "long"
      },
      {
        "name": "window_ms",
        "type": "long"
      },
      {
        "name": "trip_id",
        "type": [
          "null",
          "string"
        ],
        "default": null
      },
      {
        "name": "window_ended_at",
        "type": [
          "null",
          {
            "type": "long",
            "logicalType": "timestamp-millis"
          }
        ],
        "default": null
      },
      {
        "name": "samples",
        "type": [
          "null",
          "long"
        ],
        "default": null,
        "doc": "What the measure was taken from: decisions, results, events."
      },
      {
        "name": "resets_at",
        "type": [
          "null",
          {
            "type": "long",
            "logicalType": "timestamp-millis"
          }
        ],
        "default": null,
        "doc": "When it ends by itself; null: a person resets it."
      }
    ]
  },
  "fabric.breaker.reset": {
    "type": "record",
    "name": "FabricBreakerResetSummary",
    "namespace": "fabric",
    "doc": "A person ended a scope's read-only state.",
    "fields": [
      {
        "name": "scope",
        "type": "BreakerScope"
      },
      {
        "name": "scope_id",
        "type": "string"
      },
      {
        "name": "reset_by",
        "type": "string"
      },
      {
        "name": "cause",
        "type": "string"
      },
      {
        "name": "trip_id",
        "type": [
          "null",
          "string"
        ],
        "default": null
      }
    ]
  },
  "fabric.incident.declared": {
    "type": "record",
    "name": "FabricIncidentDeclaredSummary",
    "namespace": "fabric",
    "doc": "A person froze a scope: nothing of it is allowed until a person lifts it. The actor is who did it.",
    "fields": [
      {
        "name": "incident_id",
        "type": "string"
      },
      {
        "name": "kind",
        "type": "string",
        "doc": "A lower case word of the declarer's, such as runaway or leak."
      },
      {
        "name": "scope",
        "type": "IncidentScope"
      },
      {
        "name": "scope_id",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "declared_by",
        "type": "string"
      }
    ]
  },
  "fabric.incident.lifted": {
    "type": "record",
    "name": "FabricIncidentLiftedSummary",
    "namespace": "fabric",
    "doc": "A person lifted an incident. The actor is who did it.",
    "fields": [
      {
        "name": "incident_id",
        "type": "string"
      },
      {
        "name": "scope",
        "type": "IncidentScope"
      },
      {
        "name": "scope_id",
        "type": "string"
      },
      {
        "name": "reason",
        "type": "string",
        "doc": "Masked, at most 512 characters."
      },
      {
        "name": "lifted_by",
        "type": "string"
      }
    ]
  },
  "fabric.throttle.applied": {
    "type": "record",
    "name": "FabricThrottleAppliedSummary",
    "namespace": "fabric",
    "doc": "Observing events of a scope were dropped, delayed, coalesced, sampled or cut, and how many.",
    "fields": [
      {
        "name": "rule",
        "type": "string",
        "doc": "The limit's id in its file; loop.causation and loop.hops are built in."
      },
      {
        "name": "action",
        "type": {
          "type": "enum",
          "name": "ThrottleAction",
          "symbols": [
            "unknown",
            "drop",
            "delay",
            "coalesce",
            "sample",
            "cut"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "scope",
        "type": {
          "type": "enum",
          "name": "ThrottleScope",
          "symbols": [
            "unknown",
            "tenant",
            "agent",
            "tool",
            "type",
            "correlation"
          ],
          "default": "unknown"
        }
      },
      {
        "name": "scope_id",
        "type": "string"
      },
      {
        "name": "event_type",
        "type": "string"
      },
      {
        "name": "limit",
        "type": "long"
      },
      {
        "name": "window_ms",
        "type": "long"
      },
      {
        "name": "events",
        "type": "long",
        "doc": "How many it was applied to in the window so far, or the hops of a chain that was cut."
      }
    ]
  },
  "fabric.audit.sealed": {
    "type": "record",
    "name": "FabricAuditSealedSummary",
    "namespace": "fabric",
    "doc": "A block of the audit trail was closed and signed.",
    "fields": [
      {
        "name": "block_number",
        "type": "long"
      },
      {
        "name": "row_count",
        "type": "int"
      },
      {
        "name": "previous_digest",
        "type": "string"
      },
      {
        "name": "block_digest",
        "type": "string"
      },
      {
        "name": "key_id",
        "type": "string"
      },
      {
        "name": "signature",
        "type": "string",
        "doc": "Ed25519 over the block digest, base64url."
      }
    ]
  }
};

