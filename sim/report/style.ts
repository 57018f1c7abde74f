/** The style sheet of the report: light and dark, wide and narrow, no font and no picture. */
export const STYLE = `
:root{color-scheme:light dark;--paper:#fdfdfb;--card:#fff;--ink:#1c2430;--soft:#5a6675;
--rule:#dfe3e8;--ours:#0b6e99;--ideal:#7a8794;--offered:#c3cad2;--debt:#b4540a;
--bad:#b3261e;--good:#1a7340;--band:#f3e3c8;
--theirs:#8a5fb0;--s0:#0b6e99;--s1:#5ba3c2;--s2:#2f8f83;--s3:#8cc4b4;--s4:#d5dae0}
@media(prefers-color-scheme:dark){:root{--paper:#12161c;--card:#1a2028;--ink:#e6eaef;--soft:#a0acb9;
--rule:#333c47;--ours:#5bb8e0;--ideal:#8a97a5;--offered:#4a5561;--debt:#f0a35e;--bad:#ff8a80;
--good:#6fcf97;--band:#3a3020;--theirs:#bf9be0;--s0:#3f93b8;--s1:#76b9d6;--s2:#3f9d90;--s3:#7fbfae;
--s4:#3c4652}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
header,main,footer{max-width:1180px;margin:0 auto;padding:0 20px}
header{padding-top:28px}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 8px}
h2{font-size:1.2rem;margin:0;display:inline;overflow-wrap:anywhere}
h4{font-size:.95rem;margin:0 0 6px}
a{color:var(--ours)}
code{font:.85em/1.4 ui-monospace,monospace;overflow-wrap:anywhere}
.summary,.facts,.command,figcaption,.question,.muted,footer{color:var(--soft)}
.facts,.command,figcaption,footer{font-size:.88rem}
.good{color:var(--good)}.bad{color:var(--bad);font-weight:600}
section{margin:22px 0}
.scenario{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:14px 18px}
.scenario>details>summary{cursor:pointer}
.question{display:block;margin-top:2px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));
gap:8px 32px}
figure{margin:16px 0 6px;min-width:0}
figcaption{margin-top:4px}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;list-style:none;margin:0 0 6px;padding:0;
font-size:.85rem;color:var(--soft)}
.legend i{display:inline-block;width:16px;height:0;border-top:3px solid;vertical-align:middle;
margin-right:6px}
.legend .admitted,.legend .ours,.legend .pods{border-color:var(--ours)}
.legend .ideal{border-color:var(--ideal);border-top-width:2px}
.legend .offered{border-color:var(--offered)}
.legend .debt{border-color:var(--debt)}.legend .theirs{border-color:var(--theirs)}
.legend .level{border-top:2px dashed var(--soft)}
.legend .band-rest{border-top:10px solid var(--s4)}
.plot{position:relative;padding:8px 10px 24px 52px}
.plot.bare{padding-left:10px}
.plot svg{display:block;width:100%;height:220px;overflow:visible}
.plot.small svg,.plot.bare svg{height:130px}
.y,.x,.dots{position:absolute;font-size:.75rem;color:var(--soft);line-height:1}
.y{left:0;top:8px;bottom:24px;width:46px}
.y span{position:absolute;right:0;transform:translateY(50%);white-space:nowrap}
.x{left:52px;right:10px;bottom:4px;height:14px}
.bare .x{left:10px}
.x span{position:absolute;transform:translateX(-50%);white-space:nowrap}
.x span:first-child{transform:none}
.x span:last-child{transform:translateX(-70%)}
.dots{left:52px;right:10px;top:8px;bottom:24px;color:var(--ink);pointer-events:none}
.dots span{position:absolute;padding:0 9px 6px;white-space:nowrap}
.badges{position:relative;height:18px;margin:0 10px 0 52px;font-size:.7rem;line-height:16px}
.badges span{position:absolute;top:0;background:var(--band);border-radius:8px;padding:0 5px;
white-space:nowrap;transform:translateX(-4px)}
.events{margin:4px 0;padding-left:26px;font-size:.82rem;color:var(--soft);overflow-wrap:anywhere}
path{fill:none;vector-effect:non-scaling-stroke}
.grid{stroke:var(--rule);stroke-width:1}
.level{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:5 4}
.line{stroke-width:2;stroke-linejoin:round}
.line.offered{stroke:var(--offered);stroke-width:1.5}
.line.ideal{stroke:var(--ideal);stroke-width:1.5}
.line.admitted,.line.pods{stroke:var(--ours)}
.line.debt{stroke:var(--debt)}
.band{fill:var(--band)}
.dot{stroke-linecap:round;stroke-width:11;stroke:var(--theirs)}
.dot.ours{stroke:var(--ours)}
.share{stroke:var(--card);stroke-width:.7}
.band-0{fill:var(--s0)}.band-1{fill:var(--s1)}.band-2{fill:var(--s2)}.band-3{fill:var(--s3)}
.band-rest{fill:var(--s4)}
.bars{display:grid;grid-template-columns:auto 1fr auto;gap:6px 10px;align-items:center;
font-size:.85rem}
.track{width:100%;height:18px;background:color-mix(in srgb,var(--rule) 45%,transparent);
border-radius:2px}
.bar{fill:var(--ours)}.bar.over{fill:var(--debt)}
.what,.much{white-space:nowrap;font-variant-numeric:tabular-nums}.much{text-align:right}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:5px 10px 5px 0;text-align:right;border-bottom:1px solid var(--rule);font-weight:400}
thead th{color:var(--soft);font-weight:600}
.overview th:first-child,.overview td:nth-child(2),.overview thead th:nth-child(2),
.schemes th:nth-child(2),.overview td:last-child,.overview th:last-child{text-align:left}
tr.ours th{font-weight:600}
.scroll{overflow-x:auto}
.numbers{font-size:.85rem;margin-top:4px}
.numbers summary{color:var(--soft);cursor:pointer}
.numbers .scroll{max-height:320px;overflow-y:auto}
.verdicts{list-style:none;padding:0;margin:8px 0;font-size:.9rem}
.verdicts li{color:var(--ink);font-weight:400;padding:2px 0}
.verdicts span{display:inline-block;min-width:3.6em;font-weight:600}
.verdicts .good span{color:var(--good)}.verdicts .bad span{color:var(--bad)}
.verdicts small{color:var(--soft);white-space:nowrap}
footer{padding-bottom:32px}
@media(max-width:640px){
header,main,footer{padding-left:12px;padding-right:12px}
.scenario{padding:12px}
.overview thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
.overview,.overview tbody,.overview tr,.overview th,.overview td{display:block;border:0}
.overview tr{border-bottom:1px solid var(--rule);padding:8px 0;display:grid;
grid-template-columns:repeat(3,1fr);gap:2px 10px}
.overview th{grid-column:1/-1;text-align:left;padding:0;font-weight:600;overflow-wrap:anywhere}
.overview td,.overview td:last-child{padding:0;text-align:left}
.overview td::before{content:attr(data-label);display:block;font-size:.75rem;color:var(--soft)}
}
`;
