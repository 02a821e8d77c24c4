<?php
/* A file whose code waits: once before and once after it has defined what the includer sees. */

pause();
$inside = "included by $mark";
pause();

return strrev($mark);
