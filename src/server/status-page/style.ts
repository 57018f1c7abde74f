/** The style sheet of the status page: light and dark, wide and narrow, no font and no picture. */
export const STYLE = `
:root{color-scheme:light dark;--paper:#f6f7f9;--card:#fff;--ink:#1c2430;--soft:#566272;
--rule:#dfe3e8;--admitted:#0b6e99;--denied:#b4540a;--shadow:#7a5aa6;--other:#1f7a6d;
--good:#1a7340;--good-ground:#e2f2e8;--warn:#8a5300;--warn-ground:#fbedd3;
--bad:#a3201a;--bad-ground:#fbe4e2}
@media(prefers-color-scheme:dark){:root{--paper:#12161c;--card:#1a2028;--ink:#e6eaef;
--soft:#a3afbc;--rule:#323b46;--admitted:#5bb8e0;--denied:#f0a35e;--shadow:#bf9be0;
--other:#6cc5b5;--good:#7fd6a0;--good-ground:#16301f;--warn:#f2c277;--warn-ground:#372a12;
--bad:#ff9c94;--bad-ground:#3d1a18}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
header,main,footer{max-width:1200px;margin:0 auto;padding:0 24px}
header{display:flex;flex-wrap:wrap;gap:8px 24px;align-items:center;justify-content:space-between;
padding-top:24px}
h1{font:600 1.5rem/1.2 system-ui,sans-serif;margin:0}
h1 span{color:var(--admitted);overflow-wrap:anywhere}
h2{font:600 1.1rem/1.3 system-ui,sans-serif;margin:0}
h3{font:600 .95rem/1.3 system-ui,sans-serif;margin:0}
p{margin:0}
a{color:var(--admitted)}
:focus-visible{outline:2px solid var(--admitted);outline-offset:2px;border-radius:4px}
section{margin:28px 0}
.soft,footer{color:var(--soft);font-size:.87rem}
.soft{overflow-wrap:anywhere}
.explain{margin-top:8px;max-width:80ch}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);
white-space:nowrap}
.titled{display:flex;flex-wrap:wrap;gap:6px 24px;align-items:baseline;
justify-content:space-between;margin-bottom:10px}
label{color:var(--soft);font-size:.9rem}
select,input{font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--rule);
border-radius:6px;padding:4px 8px;max-width:min(22rem,60vw)}
.card,.chart,.tile{background:var(--card);border:1px solid var(--rule);border-radius:10px}
.state{border-radius:999px;padding:4px 14px;font:600 .9rem/1.5 system-ui,sans-serif;
background:var(--rule);color:var(--ink)}
.state::before{content:"";display:inline-block;width:.6em;height:.6em;border-radius:50%;
background:currentColor;margin-right:.5em}
.state.good{background:var(--good-ground);color:var(--good)}
.state.warn{background:var(--warn-ground);color:var(--warn)}
.state.bad{background:var(--bad-ground);color:var(--bad)}
.notice{border-radius:10px;padding:10px 14px;margin-top:12px;overflow-wrap:anywhere}
.notice.warn{background:var(--warn-ground);color:var(--warn)}
.notice.bad{background:var(--bad-ground);color:var(--bad)}
.notice ul{margin:4px 0 0;padding-left:20px}
#tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:0}
.tile{padding:12px 14px;min-width:0}
.tile dt{color:var(--soft);font-size:.83rem}
.tile dd{margin:0}
.tile .main{font:600 1.2rem/1.4 system-ui,sans-serif;font-variant-numeric:tabular-nums;
overflow-wrap:anywhere}
.tile .more{color:var(--soft);font-size:.83rem;overflow-wrap:anywhere}
.tile.warn .main{color:var(--warn)}.tile.bad .main{color:var(--bad)}
.tile.denied .main{color:var(--denied)}.tile.admitted .main{color:var(--admitted)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:12px}
.chart{margin:0;padding:12px 14px 10px;min-width:0}
.legend{display:flex;flex-wrap:wrap;gap:0 14px;list-style:none;margin:2px 0 0;padding:0;
font-size:.83rem;color:var(--soft);min-height:1.5em}
.legend i{display:inline-block;width:14px;border-top:3px solid;vertical-align:middle;
margin-right:6px}
.plot{position:relative;padding:10px 2px 26px 44px;touch-action:pan-y}
.plot svg{display:block;width:100%;height:150px;overflow:visible}
.y,.x{position:absolute;font-size:.75rem;line-height:1;color:var(--soft);white-space:nowrap;
font-variant-numeric:tabular-nums}
.y{right:calc(100% - 38px);transform:translateY(-50%)}
.x{bottom:8px;transform:translateX(-50%)}
.x.first{transform:none}.x.last{transform:translateX(-100%)}
.readout{font-size:.83rem;color:var(--soft);min-height:1.5em;
font-variant-numeric:tabular-nums}
path{fill:none;vector-effect:non-scaling-stroke}
.grid{stroke:var(--rule);stroke-width:1}
.line{stroke:currentColor;stroke-width:1.75;stroke-linejoin:round}
.area{fill:currentColor;opacity:.1;stroke:none}
.cursor{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3}
.doubtful{fill:var(--warn-ground);color:var(--warn-ground)}
.isolated{fill:var(--bad-ground);color:var(--bad-ground)}
.legend .ground{border-top:11px solid currentColor}
.plot:focus-visible{outline-offset:-2px}
.c-admitted{color:var(--admitted)}.c-denied{color:var(--denied)}.c-shadow{color:var(--shadow)}
.c-other{color:var(--other)}
.legend .c-admitted,.legend .c-denied,.legend .c-shadow,.legend .c-other{border-color:currentColor}
.card{padding:6px 14px 10px;min-width:0}
.card h3{padding:8px 0 2px}
.card>.soft{padding:8px 0 4px}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:7px 12px 7px 0;text-align:right;vertical-align:top;font:inherit;
border-bottom:1px solid var(--rule)}
th:last-child,td:last-child{padding-right:0}
tbody tr:last-child>*{border-bottom:0}
thead th{color:var(--soft);font-size:.83rem;white-space:nowrap;vertical-align:bottom}
th:first-child,th:nth-child(2),td:nth-child(2){text-align:left}
tbody th{font:600 1em/1.5 system-ui,sans-serif;overflow-wrap:anywhere;min-width:9rem}
tbody th small,td small{display:block;font:.83rem/1.4 system-ui,sans-serif;color:var(--soft)}
.badge{font:600 .72rem/1.6 system-ui,sans-serif;border-radius:999px;padding:0 8px;margin-left:6px;
background:var(--rule);color:var(--soft);white-space:nowrap}
.warn-text{color:var(--bad)}
.outline{display:block;width:110px;height:26px;margin-left:auto;overflow:visible}
.outline .line{stroke-width:1.25}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr));gap:12px;
margin-top:10px}
.pair tbody th{width:70%}
.pair td:nth-child(2),.pair th:nth-child(2){text-align:right}
code{font:.9rem/1.5 ui-monospace,monospace;unicode-bidi:isolate;overflow-wrap:anywhere}
.bar{display:block;height:4px;border-radius:2px;background:var(--admitted);margin:3px 0 0 auto;
min-width:1px}
#most-denied .bar{background:var(--denied)}
footer{padding-bottom:32px}
footer a{margin-left:10px}
.stale #tiles,.stale .charts,.stale .card{opacity:.55}
@media(max-width:760px){
header,main,footer{padding-left:14px;padding-right:14px}
section{margin:22px 0}
#limits thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
#limits,#limits tbody,#limits tr,#limits th,#limits td{display:block;border:0}
#limits tr{border-bottom:1px solid var(--rule);padding:10px 0;display:grid;
grid-template-columns:repeat(3,minmax(0,1fr));gap:6px 10px}
#limits tbody tr:last-child{border-bottom:0}
#limits th{grid-column:1/-1}
#limits th,#limits td{padding:0;text-align:left}
#limits td::before{content:attr(data-label);display:block;font-size:.75rem;color:var(--soft)}
#limits .outline{margin-left:0;width:100%}
}
@media(max-width:420px){#tiles{grid-template-columns:repeat(2,minmax(0,1fr));gap:8px}
.pair tbody th{min-width:0}
.plot .x.second{display:none}}
`;
