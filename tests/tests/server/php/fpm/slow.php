<?php
function waits($seconds) { sleep($seconds); }
class Report { static function run() { waits(2); } }
Report::run();
echo 'done';
